"""The quantizers of a layer, and what makes them."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

from ..data_classes import dataclass
from .grouped import GroupedQuantizer
from .modes import QuantizeLayout, ScalingMode, TensorSource, has_all_layout_fp8_gemm
from .quantizers import QUANTIZERS, Quantizer
from .recipes import ROLES, get_global_quantize_recipe, get_quantize_config
from .tensors import register_fields


@dataclass(eq=False)
class QuantizerSet:
    """The quantizers of a layer: of its input, of its weights and of the gradient of its output, None for none."""

    x: Quantizer | None = None
    kernel: Quantizer | None = None
    dgrad: Quantizer | None = None


#: Nothing is quantized.
noop_quantizer_set = QuantizerSet()


class QuantizeMeta:
    """Arguments of one quantizer, by name: its state, or choices of a recipe."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    @property
    def fields(self) -> dict[str, Any]:
        """All of them."""
        return dict(self.__dict__)

    @staticmethod
    def merge(one: QuantizeMeta, other: QuantizeMeta) -> QuantizeMeta:
        """The arguments of both. Raises ValueError for a name that both have."""
        twice = sorted(one.fields.keys() & other.fields.keys())
        if twice:
            raise ValueError(f"found {twice[0]} in both, expected names that differ")
        return QuantizeMeta(**one.fields, **other.fields)

    def __repr__(self) -> str:
        return f"QuantizeMeta({', '.join(self.fields)})"


@dataclass(frozen=True)
class QuantizeMetaSet:
    """Arguments of the three quantizers of a layer."""

    x: QuantizeMeta = dataclasses.field(default_factory=QuantizeMeta)
    kernel: QuantizeMeta = dataclasses.field(default_factory=QuantizeMeta)
    grad: QuantizeMeta = dataclasses.field(default_factory=QuantizeMeta)


class QuantizerFactory:
    """Makes quantizers by what they do."""

    @staticmethod
    def create(
        n_quantizers: int = 1,
        scaling_mode: ScalingMode | None = None,
        q_dtype: Any = None,
        q_layout: QuantizeLayout | None = None,
        n_groups: int | None = None,
        checkpoint_name: str | None = None,
        **fields: Any,
    ) -> Any:
        """One quantizer, or a tuple of so many.

        Args:
            n_quantizers: how many.
            scaling_mode: by default NO_SCALING, which gives None.
            q_dtype, q_layout, checkpoint_name: as of `Quantizer`; by default what its class has.
            n_groups: how many groups it is for, if it is a GroupedQuantizer.
            fields: the other attributes of the class, as `margin` of DelayedScaleQuantizer.

        Raises TypeError for an attribute that the class does not have, ValueError for values that it cannot have.
        """
        if type(n_quantizers) is not int or n_quantizers < 1:
            raise ValueError(f"n_quantizers is {n_quantizers!r}, expected a positive integer")
        made = tuple(
            _make(scaling_mode or ScalingMode.NO_SCALING, q_dtype, q_layout, n_groups, checkpoint_name, fields)
            for _ in range(n_quantizers)
        )
        if n_groups and n_quantizers > 1:
            warnings.warn("found several grouped quantizers, expected one for all groups", stacklevel=2)
        return made[0] if n_quantizers == 1 else made

    @staticmethod
    def create_set(
        n_quantizer_sets: int = 1,
        scaling_mode: ScalingMode | None = None,
        fwd_dtype: Any = None,
        bwd_dtype: Any = None,
        is_2x2x: bool | None = None,
        n_groups: int | None = None,
        checkpoint_name: str | None = None,
        fp8_recipe: Any = None,
        quantize_meta_set: QuantizeMetaSet | None = None,
    ) -> Any:
        """The quantizers of a layer, or a tuple of so many.

        Args:
            scaling_mode: of all three, with data types `fwd_dtype` of x and kernel and `bwd_dtype` of dgrad. Where it
                and `fp8_recipe` are left out, the recipe of `autocast` decides, and without one nothing is quantized.
            is_2x2x: whether all are quantized along both directions; by default where products want both. If not, they
                are quantized along rows, but kernels in blocks along columns.
            n_groups: of rows, each of which is quantized alone (`GroupedQuantizer`).
            checkpoint_name: of all three.
            fp8_recipe: a recipe of `dither.recipe`.
            quantize_meta_set: arguments of each quantizer, by name: their state.

        Raises ValueError where both a mode and a recipe are given, or data types without a mode.
        """
        if type(n_quantizer_sets) is not int or n_quantizer_sets < 1:
            raise ValueError(f"n_quantizer_sets is {n_quantizer_sets!r}, expected a positive integer")
        if scaling_mode is not None and fp8_recipe is not None:
            raise ValueError("scaling_mode was given beside fp8_recipe, expected one of the two")
        recipe = fp8_recipe
        if scaling_mode is None and recipe is None:
            recipe = get_global_quantize_recipe()
        if scaling_mode is None:
            for name, value in (("fwd_dtype", fwd_dtype), ("bwd_dtype", bwd_dtype)):
                if value is not None:
                    raise ValueError(f"{name} was given without scaling_mode, expected both or none of the two")
        elif not isinstance(scaling_mode, ScalingMode):
            raise _no_mode(scaling_mode)
        metas = quantize_meta_set or QuantizeMetaSet()

        config = get_quantize_config(recipe) if recipe is not None else None
        mode = scaling_mode or ScalingMode.NO_SCALING

        def make(source: TensorSource, meta: QuantizeMeta) -> Quantizer | None:
            if config is not None and config.factory is not None:
                return _made_by(config.factory, source, is_2x2x, n_groups, checkpoint_name)
            if config is None:
                chosen = {"scaling_mode": mode, "q_dtype": bwd_dtype if source is TensorSource.DGRAD else fwd_dtype}
            else:
                first = {k: v for k, v in config.initial_state(source).items() if k not in meta.fields}
                chosen = {**first, **config.arguments(source)}
            merged = QuantizeMeta.merge(QuantizeMeta(**chosen), meta).fields
            layout = _layout(merged["scaling_mode"], source, is_2x2x)
            made: Quantizer | None = QuantizerFactory.create(
                q_layout=layout, n_groups=n_groups, checkpoint_name=checkpoint_name, **merged
            )
            return made

        slots = tuple(zip(TensorSource, (metas.x, metas.kernel, metas.grad), strict=True))
        sets = tuple(QuantizerSet(*(make(*slot) for slot in slots)) for _ in range(n_quantizer_sets))
        return sets[0] if n_quantizer_sets == 1 else sets


def _make(
    mode: ScalingMode, q_dtype: Any, q_layout: Any, n_groups: int | None, checkpoint_name: str | None, fields: Any
) -> Quantizer | None:
    if not isinstance(mode, ScalingMode):
        raise _no_mode(mode)
    if mode is ScalingMode.NO_SCALING:
        return None
    kind = QUANTIZERS[mode]
    known = [field.name for field in dataclasses.fields(kind)]
    for name in fields:
        if name not in known:
            raise TypeError(f"found {name}=, expected {', '.join(known)}: {mode.name} has a {kind.__name__}")
    options = {"q_dtype": q_dtype, "scaling_mode": mode, "checkpoint_name": checkpoint_name, **fields}
    if q_layout is not None:
        options["q_layout"] = q_layout
    if not n_groups:
        return kind(**options)
    each = tuple(kind(**options) for _ in range(n_groups))
    first = each[0]
    own = {name: getattr(first, name) for name in (f.name for f in dataclasses.fields(Quantizer))}
    return GroupedQuantizer(**own, n_groups=n_groups, quantizers=each)


def _no_mode(mode: Any) -> TypeError:
    return TypeError(f"scaling_mode is {mode!r}, expected a ScalingMode")


def _made_by(
    factory: Any, source: TensorSource, is_2x2x: bool | None, n_groups: int | None, checkpoint_name: str | None
) -> Quantizer | None:
    """What the factory of a recipe makes for a tensor."""
    role = ROLES[source]
    made = factory(role)
    if made is None:
        return None
    if not isinstance(made, Quantizer):
        raise TypeError(
            f"the factory gives {type(made).__name__} for {role!r}, expected a dither.jax.Quantizer or None"
        )
    if n_groups and not isinstance(made, GroupedQuantizer):
        raise TypeError(f"the factory gives {type(made).__name__} for {role!r}, expected a GroupedQuantizer")
    layout = _layout(made.scaling_mode, source, is_2x2x)
    return dataclasses.replace(made, q_layout=layout, checkpoint_name=checkpoint_name or made.checkpoint_name)


def _layout(mode: ScalingMode | None, source: TensorSource, is_2x2x: bool | None) -> QuantizeLayout:
    mode = mode or ScalingMode.NO_SCALING
    if is_2x2x is None:
        is_2x2x = not (mode.is_tensor_scaling() and has_all_layout_fp8_gemm())
    if is_2x2x:
        return QuantizeLayout.ROWWISE_COLWISE
    kernel = source is TensorSource.KERNEL and mode.is_block_scaling
    return QuantizeLayout.COLWISE if kernel else QuantizeLayout.ROWWISE


register_fields(QuantizerSet, ("x", "kernel", "dgrad"))
