"""Recipes in JAX: what quantizers they stand for, and which one is in force.

The recipe in force is a matter of the context (`contextvars`): threads and tasks have their own.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import warnings
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp

from .. import recipe as recipes
from ..data_classes import dataclass
from ..errors import suggest
from .arrays import dtype_of_kind
from .mesh import MeshResource, global_shard_guard
from .modes import ScalingMode, TensorSource, mode_of
from .settings import told_to_jit, within

#: What a recipe calls the tensors of a layer.
ROLES = {TensorSource.X: "input", TensorSource.KERNEL: "weight", TensorSource.DGRAD: "grad_output"}
_BY_NAME = {
    kind.__name__: kind
    for kind in (
        recipes.DelayedScaling,
        recipes.Float8CurrentScaling,
        recipes.MXFP8BlockScaling,
        recipes.Float8BlockScaling,
        recipes.NVFP4BlockScaling,
    )
}

_recipe: contextvars.ContextVar[recipes.Recipe | None] = told_to_jit(
    contextvars.ContextVar("dither_recipe", default=None)
)


@dataclass(frozen=True)
class QuantizeConfig:
    """What quantizers a recipe stands for; without a recipe none.

    Raises TypeError for what is no recipe, and ValueError for what JAX does not have: functions that compute amaxes or
    scales, and amaxes of one process alone.
    """

    recipe: recipes.Recipe | None = None

    def __post_init__(self) -> None:
        recipe = self.recipe
        if recipe is not None and not isinstance(recipe, recipes.Recipe):
            raise TypeError(f"argument 'recipe' is {type(recipe).__name__}, expected a recipe of dither.recipe")
        if not isinstance(recipe, recipes.DelayedScaling):
            return
        if callable(recipe.amax_compute_algo):
            raise ValueError("amax_compute_algo is a function, expected 'max' or 'most_recent' in JAX")
        if recipe.scaling_factor_compute_algo is not None:
            raise ValueError("scaling_factor_compute_algo is a function, expected None in JAX")
        if not recipe.reduce_amax:
            raise ValueError("reduce_amax is False, expected True in JAX, where amaxes are those of whole tensors")

    @property
    def factory(self) -> Any:
        """The function of the recipe that makes quantizers, of the names of tensors ("input", "weight",
        "grad_output"); None where the recipe itself says what they are."""
        return None if self.recipe is None else self.recipe.qfactory

    def get_scaling_mode(self, source: TensorSource) -> ScalingMode:
        """What scales of this tensor are of."""
        found: ScalingMode = self.arguments(source)["scaling_mode"]
        return found

    def arguments(self, source: TensorSource) -> dict[str, Any]:
        """The arguments of `QuantizerFactory.create` for this tensor, but for state. Raises TypeError of a
        CustomRecipe, whose factory knows."""
        if self.recipe is None:
            return {"scaling_mode": ScalingMode.NO_SCALING}
        how = self.recipe.quantization(ROLES[source])
        mode = mode_of(how.format, how.delayed)
        if mode is None:
            raise ValueError(f"the recipe has {how.format!r} for {source.name}, which is no scaling mode of JAX")
        found = {"scaling_mode": mode, "q_dtype": dtype_of_kind(how.format.element), "format": how.format}
        if how.delayed:
            assert isinstance(self.recipe, recipes.DelayedScaling)
            found |= {"margin": self.recipe.margin, "amax_compute_algo": self.recipe.amax_compute_algo}
        if how.hadamard:
            found["use_rht"] = True
        return found

    def initial_state(self, source: TensorSource) -> dict[str, Any]:
        """The state that a quantizer of this tensor begins with, by the name of its attribute."""
        if not isinstance(self.recipe, recipes.DelayedScaling):
            return {}
        return {
            "scale": jnp.ones(1, jnp.float32),
            "amax_history": jnp.zeros(self.recipe.amax_history_len, jnp.float32),
        }

    @staticmethod
    def initialize_from_recipe(recipe: Any) -> QuantizeConfig:
        """That of a recipe. Raises ValueError without one."""
        if recipe is None:
            raise ValueError("argument 'recipe' is None, expected a recipe of dither.recipe")
        return get_quantize_config(recipe)

    def is_supported(self) -> tuple[bool, str]:
        """True and no reason: dither quantizes on every device."""
        return True, ""

    def get_quantize_flax_meta(self, module: Any, collection_name: str, postfix: str, source: Any, name: str) -> Any:
        """The state of the quantizer of a tensor of a linen module, called within it, as a `QuantizeMeta`: variables
        `{name}{postfix}_scale`, .. of a collection, and random words from the stream `sr_rng`."""
        from .flax.state import meta_of

        return meta_of(self, module, collection_name, postfix, source, name)

    def is_stochastic(self, source: TensorSource) -> bool:
        """Whether this tensor is rounded at random: its quantizer then wants `stochastic_rounding_rng_state`."""
        return self.recipe is not None and self.recipe.quantization(ROLES[source]).stochastic


@contextlib.contextmanager
def autocast(enabled: bool = False, recipe: Any = None, mesh_resource: MeshResource | None = None) -> Iterator[None]:
    """Layers that are made or called within are quantized by a recipe, by default `dither.recipe.DelayedScaling()`.

    What `jax.jit` traced under another recipe is traced anew within. JAX keeps that by thread: a task, or a thread with
    the context of another one, that calls what is jitted enters a region of its own.

    Args:
        enabled: if not, nothing is quantized within.
        recipe: one of `dither.recipe`.
        mesh_resource: axes of the mesh (`global_shard_guard`); by default those that are in force.
    """
    chosen = QuantizeConfig(recipe or recipes.DelayedScaling()).recipe if enabled else None
    with contextlib.ExitStack() as stack:
        if mesh_resource is not None:
            stack.enter_context(global_shard_guard(mesh_resource))
        stack.enter_context(within(_recipe, chosen))
        yield


@contextlib.contextmanager
def fp8_autocast(
    enabled: bool = False, fp8_recipe: Any = None, mesh_resource: MeshResource | None = None
) -> Iterator[None]:
    """`autocast`, by an older name."""
    warnings.warn("found fp8_autocast, expected dither.jax.autocast, which has this name now", DeprecationWarning, 3)
    with autocast(enabled, fp8_recipe, mesh_resource):
        yield


def get_global_quantize_recipe() -> recipes.Recipe | None:
    """The recipe of the innermost `autocast`, None where nothing is quantized."""
    return _recipe.get()


def get_quantize_config(recipe: Any = None) -> QuantizeConfig:
    """What a recipe stands for, by default that in force."""
    return _config(recipe if recipe is not None else _recipe.get())


@functools.lru_cache(maxsize=256)
def _config(recipe: Any) -> QuantizeConfig:
    return QuantizeConfig(recipe)


def get_quantization_recipe(name: str) -> recipes.Recipe:
    """The recipe of this name, with its defaults. Raises ValueError for other names."""
    if name not in _BY_NAME:
        raise ValueError(f"found recipe {name!r}, expected {', '.join(_BY_NAME)}{suggest(str(name), _BY_NAME)}")
    return _BY_NAME[name]()


def get_supported_quantization_recipes() -> list[recipes.Recipe]:
    """All of them, with their defaults."""
    return [kind() for kind in _BY_NAME.values()]


def is_quantize_recipe_supported(name: str) -> tuple[bool, str]:
    """True and no reason: dither quantizes on every device. Raises ValueError for other names."""
    get_quantization_recipe(name)
    return True, ""


def get_supported_scaling_modes() -> list[ScalingMode]:
    """All of them that scale anything."""
    return [mode for mode in ScalingMode if mode is not ScalingMode.NO_SCALING]


def is_scaling_mode_supported(scaling_mode: ScalingMode, gpu_id: int | None = None) -> tuple[bool, str]:
    """True and no reason, on every device: dither quantizes on all, and products have a way on all."""
    if not isinstance(scaling_mode, ScalingMode):
        raise TypeError(f"scaling_mode is {scaling_mode!r}, expected a ScalingMode")
    return True, ""
