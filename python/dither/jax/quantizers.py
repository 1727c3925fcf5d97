"""Quantizers: how a tensor is quantized, as objects, which are pytrees; their state is their leaves.

A quantizer gives the options of a call of dither's operators (`options`), makes the call (`run`), and takes from it
what its state needs. So every operator, and not `quantize` alone, is fused with quantization by it.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from .. import ops
from ..data_classes import dataclass
from ..formats import Format
from ..ops import RandomHadamard
from ..ops.hadamard import SIGN_MASK
from .arrays import dtype_of_kind, kind_of_dtype
from .delayed import DelayedState, initial_state
from .delayed import update as delayed_update
from .modes import AmaxScope, QuantizeLayout, ScalingMode, mode_of
from .parts import of_scope, reduced_over_all
from .tensors import NoScaleTensor, register_fields


class AmaxComputeAlgo(enum.Enum):
    """What of its history delayed scaling takes."""

    MAX = "max"
    MOST_RECENT = "most_recent"


@ops.fuse
def delayed_quantize(x):
    """`x` as it is: `quantize` that returns its amax."""
    return x


@dataclass(eq=False)
class Quantizer:
    """How a tensor is quantized.

    Attributes:
        q_dtype: data type of codes; by default the first that the mode has.
        scaling_mode: what has a scale.
        q_layout: directions that are quantized where a call does not say.
        data_layout: "N" or "T" for each direction: how codes are stored. What the mode has, and nothing else.
        checkpoint_name: the name that `checkpoint` of tensors gives them.
        format: the format of dither, with whatever else it says (rounding of scales, epsilon, four over six); by
            default that of the mode.
        scale_layout: the order of scales, as of `dither.quantize`.
    """

    q_dtype: Any = None
    scaling_mode: ScalingMode = ScalingMode.CURRENT_TENSOR_SCALING
    q_layout: QuantizeLayout = QuantizeLayout.ROWWISE_COLWISE
    data_layout: str = ""
    checkpoint_name: str | None = None
    format: Format | None = None
    scale_layout: str = "linear"

    #: Fields that are leaves.
    state: ClassVar[tuple[str, ...]] = ()
    #: Modes that the class is for.
    modes: ClassVar[tuple[ScalingMode, ...]] = tuple(ScalingMode)

    def __post_init__(self) -> None:
        mode = self.scaling_mode
        if mode not in self.modes or mode is ScalingMode.NO_SCALING:
            names = ", ".join(one.name for one in self.modes)
            raise ValueError(f"scaling_mode is {mode}, expected {names} for {type(self).__name__}")
        if not isinstance(self.q_layout, QuantizeLayout):
            raise TypeError(f"q_layout is {self.q_layout!r}, expected a QuantizeLayout")
        default = mode.format(self.q_dtype)
        assert default is not None
        self.format = self.format or default
        self.q_dtype = dtype_of_kind(self.format.element)
        delayed = mode is ScalingMode.DELAYED_TENSOR_SCALING
        if mode_of(self.format, delayed) is not mode or self.format.element is not default.element:
            raise ValueError(
                f"format is {self.format!r} for {mode.name} and {default.element}, expected a variant of {default!r}"
            )
        self.data_layout = self.data_layout or mode.get_data_layout()
        if self.data_layout != mode.get_data_layout():
            raise ValueError(
                f"data_layout is {self.data_layout!r}, expected {mode.get_data_layout()!r} for {mode.name}"
            )

    # -- shapes ---------------------------------------------------------------------------------

    def get_scale_shapes(self, data_shape: Any, is_padded: bool = True, flatten_axis: int = -1) -> Any:
        """Shapes of scales along rows and along columns: see `ScalingMode.get_scale_shape_2x`."""
        return self.scaling_mode.get_scale_shape_2x(
            data_shape, is_padded, flatten_axis, self.scaling_mode.repeats_scales
        )

    def get_scale_dtype(self) -> Any:
        """The data type of scales."""
        return self.scaling_mode.get_scale_dtype()

    def get_data_layout(self) -> str:
        """A letter for each direction, or that of the one that is quantized."""
        if self.q_layout.is_rowwise_colwise:
            return self.data_layout
        return self.data_layout[1 if self.q_layout.is_colwise_only else 0]

    # -- calls ------------------------------------------------------------------------------------

    def options(self, q_layout: QuantizeLayout | None = None) -> dict[str, Any]:
        """What dither's operators are told: keyword arguments of `dither.rms_norm`, `dither.swiglu` and all others."""
        layout = q_layout or self.q_layout
        return {
            "format": self.format,
            "layout": layout.of_operators,
            "scale_layout": self.scale_layout,
            "repeat_scales": self.scaling_mode.repeats_scales,
        }

    def run(
        self,
        operator: Any,
        *operands: Any,
        q_layout: QuantizeLayout | None = None,
        amax: Any = None,
        dq_dtype: Any = None,
        amax_scope: AmaxScope = AmaxScope.LOCAL,
        **options: Any,
    ) -> tuple[Any, Any]:
        """A call of an operator of dither with its output quantized, and the state of the quantizer after it.

        Args:
            operator: such as `dither.rms_norm`; `operands` and `options` are its arguments.
            q_layout: by default that of the quantizer.
            amax: the largest magnitude of the output where it is known. It is used where scales depend on it.
            dq_dtype: what `dequantize` of the result gives by default.
            amax_scope: in `jax.shard_map`, over which devices the amax is taken.

        Returns the quantized tensor, and all that the call gives.
        """
        layout = q_layout or self.q_layout
        given = self.options(layout)
        if amax is not None and self._takes_amax(layout, given):
            given["amax"] = amax
        with of_scope(amax_scope):
            made = operator(*operands, **given, **options)
        tensor = made[0] if isinstance(made, tuple) else made
        self._took(made)
        if dq_dtype is not None:
            tensor = with_dtype(tensor, kind_of_dtype(dq_dtype))
        return tensor, made

    def quantize(
        self,
        x: Any,
        is_rowwise: bool | None = None,
        is_colwise: bool | None = None,
        dq_dtype: Any = None,
        flatten_axis: int = -1,
        amax_scope: AmaxScope = AmaxScope.LOCAL,
    ) -> Any:
        """`x`, an array or a NoScaleTensor, quantized: a ScaledTensor1x, or a ScaledTensor2x of both directions.

        `is_rowwise` and `is_colwise` say which, by default what `q_layout` says. The other arguments are those of `run`
        and of `dither.quantize`.
        """
        layout = self._layout(is_rowwise, is_colwise)
        data, amax = (x.data, x.amax) if isinstance(x, NoScaleTensor) else (x, None)
        options = {"dq_dtype": dq_dtype, "flatten_axis": flatten_axis, "amax_scope": amax_scope}
        return self.run(self._operator(), data, q_layout=layout, amax=amax, **options)[0]

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Ends a step: nothing, where there is no state."""

    def _operator(self) -> Any:
        return ops.quantize

    def _took(self, made: Any) -> None:
        """What a call gave, for the state."""

    def _takes_amax(self, layout: QuantizeLayout, options: dict[str, Any]) -> bool:
        """Whether scales depend on the amax of the tensor as it is."""
        fmt = self.format
        assert fmt is not None
        if fmt.row_amax or not (fmt.tensor_scale or fmt.block == "tensor"):
            return False
        return options.get("transform") is None or layout.has_rowwise

    def _layout(self, is_rowwise: bool | None, is_colwise: bool | None) -> QuantizeLayout:
        rowwise = self.q_layout.has_rowwise if is_rowwise is None else is_rowwise
        colwise = self.q_layout.has_colwise if is_colwise is None else is_colwise
        return QuantizeLayout.of(rowwise, colwise)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.format!r}, {self.q_layout.name})"


@dataclass(eq=False, repr=False)
class CurrentScaleQuantizer(Quantizer):
    """FP8 with one scale of the tensor, from its own amax, as Transformer Engine's current scaling has it."""

    modes: ClassVar[tuple[ScalingMode, ...]] = (ScalingMode.CURRENT_TENSOR_SCALING,)


@dataclass(eq=False, repr=False)
class DelayedScaleQuantizer(Quantizer):
    """FP8 with one scale of the tensor, from the amaxes of earlier steps: `dither.update_scale` says how.

    A call quantizes with the scale that is there, and then changes this object: `scale` and `amax_history` are those of
    the next step. Under `jax.jit` return the quantizer, which is a pytree, and take it on.

    Attributes:
        margin: a whole number; scales are 2^-margin times what they would be.
        amax_compute_algo: MAX, the largest of the history, or MOST_RECENT.
        scale: (1,) float32, what elements are multiplied by.
        amax_history: (L,) float32, L at least 1.
    """

    scaling_mode: ScalingMode = ScalingMode.DELAYED_TENSOR_SCALING
    margin: float = 0.0
    amax_compute_algo: AmaxComputeAlgo = AmaxComputeAlgo.MAX
    scale: Any = None
    amax_history: Any = None

    state: ClassVar[tuple[str, ...]] = ("scale", "amax_history")
    modes: ClassVar[tuple[ScalingMode, ...]] = (ScalingMode.DELAYED_TENSOR_SCALING,)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.amax_compute_algo = AmaxComputeAlgo(self.amax_compute_algo)
        if self.margin != int(self.margin):
            raise ValueError(f"margin is {self.margin!r}, expected a whole number")
        first = initial_state()
        self.scale = first.scale if self.scale is None else self.scale
        self.amax_history = first.amax_history if self.amax_history is None else self.amax_history
        fits = {"scale": jnp.size(self.scale) == 1, "amax_history": jnp.ndim(self.amax_history) == 1}
        for name, fit in fits.items():
            x = getattr(self, name)
            if not fit or not jnp.size(x) or jnp.result_type(x) != jnp.float32:
                expected = "(1,)" if name == "scale" else "(L,) with L at least 1"
                raise ValueError(
                    f"{name} is {jnp.result_type(x)} of shape {jnp.shape(x)}, expected float32 of {expected}"
                )
        self.scale = jnp.reshape(self.scale, 1)

    def options(self, q_layout: QuantizeLayout | None = None) -> dict[str, Any]:
        """See `Quantizer.options`; `encode_scale` is `scale`, and the call returns its amax."""
        return {**super().options(q_layout), "encode_scale": self.scale, "return_amax": True}

    def update(self, new_amax: Any) -> None:
        """Ends a step in which the amax of the tensor was `new_amax`."""
        state = DelayedState(self.scale, self.amax_history)
        self.scale, self.amax_history = delayed_update(
            state, new_amax, q_dtype=self.q_dtype, margin=self.margin, algorithm=self.amax_compute_algo.value
        )

    def _operator(self) -> Any:
        return delayed_quantize

    def _took(self, made: Any) -> None:
        self.update(reduced_over_all(made.amax))

    def _takes_amax(self, layout: QuantizeLayout, options: dict[str, Any]) -> bool:
        return False


@dataclass(eq=False, repr=False)
class BlockScaleQuantizer(Quantizer):
    """A scale for each block: MXFP8, MXFP4, and FP8 of blocks of 128."""

    scaling_mode: ScalingMode = ScalingMode.MXFP8_1D_SCALING

    modes: ClassVar[tuple[ScalingMode, ...]] = (
        ScalingMode.MXFP8_1D_SCALING,
        ScalingMode.MXFP8_2D_SCALING,
        ScalingMode.MXFP4_1D_SCALING,
        ScalingMode.FP8_1D_BLOCK_SCALING,
        ScalingMode.FP8_2D_BLOCK_SCALING,
    )


@dataclass(eq=False, repr=False)
class NVFP4Quantizer(Quantizer):
    """NVFP4 in blocks of 16, or of 16 x 16.

    Attributes:
        use_rht: whether what is quantized along columns is transformed first (blocks of 16 alone), by
            `dither.RandomHadamard(16, sign_mask)`.
        sign_mask: its signs.
        stochastic_rounding_rng_state: where random bits come from, if codes are rounded at random: uint32 of four
            words, a seed and an offset of 64 bits each, the low word first, or of (devices, 4), of which the first row
            is taken, as bits depend on places in the whole tensor. Or a key of `jax.random`. None rounds to nearest.
    """

    scaling_mode: ScalingMode = ScalingMode.NVFP4_1D_SCALING
    use_rht: bool = False
    sign_mask: int = SIGN_MASK
    stochastic_rounding_rng_state: Any = None

    state: ClassVar[tuple[str, ...]] = ("stochastic_rounding_rng_state",)
    modes: ClassVar[tuple[ScalingMode, ...]] = (ScalingMode.NVFP4_1D_SCALING, ScalingMode.NVFP4_2D_SCALING)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.use_rht, bool):
            raise TypeError(f"use_rht is {self.use_rht!r}, expected True or False")
        if self.use_rht and self.scaling_mode is not ScalingMode.NVFP4_1D_SCALING:
            raise ValueError("use_rht is True for NVFP4_2D_SCALING, expected False: transforms are of blocks of 16")
        state = self.stochastic_rounding_rng_state
        if state is None or jnp.issubdtype(state.dtype, jax.dtypes.prng_key):
            return
        if state.dtype != jnp.uint32:
            raise TypeError(f"stochastic_rounding_rng_state has data type {state.dtype}, expected uint32")
        if state.shape != (4,) and (state.ndim != 2 or state.shape[-1] != 4 or not state.shape[0]):
            raise ValueError(f"stochastic_rounding_rng_state has shape {state.shape}, expected (4,) or (devices, 4)")

    def options(self, q_layout: QuantizeLayout | None = None) -> dict[str, Any]:
        """See `Quantizer.options`."""
        found = super().options(q_layout)
        if self.use_rht and (q_layout or self.q_layout).has_colwise:
            found["transform"] = RandomHadamard(16, self.sign_mask)
        state = self.stochastic_rounding_rng_state
        if state is None:
            return found
        found["rounding"] = "stochastic"
        if jnp.issubdtype(state.dtype, jax.dtypes.prng_key):
            return {**found, "seed": state}
        words = state.reshape(-1, 4)[0]
        return {**found, "seed": words[:2], "offset": words[2:]}


QUANTIZERS: dict[ScalingMode, type[Quantizer]] = {
    mode: kind
    for kind in (CurrentScaleQuantizer, DelayedScaleQuantizer, BlockScaleQuantizer, NVFP4Quantizer)
    for mode in kind.modes
}


def checked_quantizer(quantizer: Any) -> Quantizer:
    """A quantizer; raises TypeError for what is none."""
    if not isinstance(quantizer, Quantizer):
        found = type(quantizer).__name__
        raise TypeError(f"argument 'quantizer' is {found}, expected a dither.jax.Quantizer or None")
    return quantizer


def with_dtype(tensor: Any, kind: Any) -> Any:
    """A quantized tensor of what had this data type."""
    if hasattr(tensor, "rowwise"):
        return type(tensor)(with_dtype(tensor.rowwise, kind), with_dtype(tensor.colwise, kind))
    return dataclasses.replace(tensor, dtype=kind)


for _kind in (Quantizer, CurrentScaleQuantizer, DelayedScaleQuantizer, BlockScaleQuantizer, NVFP4Quantizer):
    register_fields(_kind, _kind.state)
