"""The recipes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import formats
from ..data_classes import dataclass
from ..errors import suggest
from ..types import DType, float8_e4m3
from .parameters import Format, MMParams, QParams, Quantization, choice, flags, integer

#: What a tensor of a linear layer is to it, in the order of slots: forward ones first.
FORWARD_TENSORS = ("input", "weight", "output")
BACKWARD_TENSORS = ("grad_output", "grad_input")
TENSORS = FORWARD_TENSORS + BACKWARD_TENSORS
BACKWARD_OVERRIDES = (None, "high_precision", "dequantized")
SCOPES = ("none", "weights", "activations", "all")
_EXACT, _FAST = MMParams(), MMParams(use_split_accumulator=False)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What all recipes have.

    Attributes:
        fp8_dpa, fp8_mha: whether attention is quantized, too; a hint for modules that have one.
        backward_override: what the products of the backward pass take: None for quantized operands, "high_precision"
            for those that the forward pass had, or "dequantized" for the values of those that it quantized.
        qfactory: what makes the quantizers in place of this recipe, or None: see `set_quantizer_factory`.

    Recipes are equal, and have one hash, where all of their parameters are.
    """

    fp8_dpa: bool = False
    fp8_mha: bool = False
    backward_override: str | None = None
    qfactory: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        flags(self, "fp8_dpa", "fp8_mha")
        choice("backward_override", self.backward_override, BACKWARD_OVERRIDES)
        if self.qfactory is not None or self.custom():
            self.set_quantizer_factory(self.qfactory)

    @classmethod
    def delayed(cls) -> bool:
        """Whether this is DelayedScaling; of a recipe or of its class, as are the others."""
        return issubclass(cls, DelayedScaling)

    @classmethod
    def float8_current_scaling(cls) -> bool:
        """Whether this is Float8CurrentScaling."""
        return issubclass(cls, Float8CurrentScaling)

    @classmethod
    def float8_per_tensor_scaling(cls) -> bool:
        """Whether this is DelayedScaling or Float8CurrentScaling."""
        return issubclass(cls, (DelayedScaling, Float8CurrentScaling))

    @classmethod
    def float8_block_scaling(cls) -> bool:
        """Whether this is Float8BlockScaling."""
        return issubclass(cls, Float8BlockScaling)

    @classmethod
    def mxfp8(cls) -> bool:
        """Whether this is MXFP8BlockScaling."""
        return issubclass(cls, MXFP8BlockScaling)

    @classmethod
    def nvfp4(cls) -> bool:
        """Whether this is NVFP4BlockScaling."""
        return issubclass(cls, NVFP4BlockScaling)

    @classmethod
    def custom(cls) -> bool:
        """Whether this is CustomRecipe."""
        return issubclass(cls, CustomRecipe)

    def quantization(self, tensor: str) -> Quantization:
        """How a tensor of a linear layer is quantized.

        Args:
            tensor: "input", "weight", "output", "grad_output" or "grad_input".

        Raises TypeError of a CustomRecipe, whose factory knows, and ValueError for other tensors.
        """
        if tensor not in TENSORS:
            raise ValueError(f"tensor is {tensor!r}, expected {', '.join(TENSORS)}{suggest(str(tensor), TENSORS)}")
        return self._quantization(tensor)

    def _quantization(self, tensor: str) -> Quantization:
        raise TypeError(f"{type(self).__name__} says nothing of formats, expected a recipe that does")

    def set_quantizer_factory(self, qfactory: Callable[[Any], Any] | None) -> None:
        """Has `qfactory(role)` make the quantizers, as CustomRecipe has. Part of what the recipe is: to be said before
        it is used. None takes the factory back."""
        if not (callable(qfactory) or (qfactory is None and not self.custom())):
            raise TypeError(f"qfactory is {qfactory!r}, expected a function of a role")
        object.__setattr__(self, "qfactory", qfactory)


@dataclass(frozen=True)
class DelayedScaling(Recipe):
    """FP8 with one scale for a tensor, from the largest magnitudes of earlier steps.

    Attributes:
        margin: the scale is 2^-margin times the one that takes the amax to the largest element.
        fp8_format: E4M3 or HYBRID.
        amax_history_len: how many steps are remembered.
        amax_compute_algo: "max", "most_recent", or a function of the history (L, T) that gives the amaxes (T,).
        scaling_factor_compute_algo: a function (amax, scale, fp8_max, recipe) that gives the new scales, or None.
        reduce_amax: whether amaxes are those of all processes of the group of `autocast`.
    """

    margin: int = 0
    fp8_format: Format = Format.HYBRID
    amax_history_len: int = 1024
    amax_compute_algo: str | Callable[[Any], Any] = "max"
    scaling_factor_compute_algo: Callable[[Any, Any, Any, Any], Any] | None = None
    reduce_amax: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("margin", self.margin)
        _fp8_format(self.fp8_format)
        if integer("amax_history_len", self.amax_history_len) < 1:
            raise ValueError(f"amax_history_len is {self.amax_history_len}, expected at least 1")
        if not callable(self.amax_compute_algo):
            choice("amax_compute_algo", self.amax_compute_algo, ("max", "most_recent"), " or a function")
        algo = self.scaling_factor_compute_algo
        if algo is not None and not callable(algo):
            raise TypeError(f"scaling_factor_compute_algo is {algo!r}, expected a function or None")
        flags(self, "reduce_amax")
        if self.backward_override is not None:
            raise ValueError(f"backward_override is {self.backward_override!r}, expected None for DelayedScaling")

    def _quantization(self, tensor: str) -> Quantization:
        return Quantization(_fp8("tensor", self.fp8_format, tensor), delayed=True)


@dataclass(frozen=True)
class Float8CurrentScaling(Recipe):
    """FP8 with one scale for a tensor, from its own largest magnitude.

    Attributes:
        use_power_2_scales: whether scales are cut to powers of two; what the QParams that are left out say.
        fp8_format: E4M3 or HYBRID.
        fp8_quant_fwd_inp, fp8_quant_fwd_weight, fp8_quant_bwd_grad: QParams of each tensor.
        fp8_gemm_fprop, fp8_gemm_dgrad, fp8_gemm_wgrad: MMParams of each product.
    """

    use_power_2_scales: bool = False
    fp8_format: Format = Format.HYBRID
    fp8_quant_fwd_inp: QParams = None  # type: ignore[assignment]
    fp8_quant_fwd_weight: QParams = None  # type: ignore[assignment]
    fp8_quant_bwd_grad: QParams = None  # type: ignore[assignment]
    fp8_gemm_fprop: MMParams = _FAST
    fp8_gemm_dgrad: MMParams = _EXACT
    fp8_gemm_wgrad: MMParams = _EXACT

    def __post_init__(self) -> None:
        super().__post_init__()
        flags(self, "use_power_2_scales")
        _fp8_format(self.fp8_format)
        _float8_params(self, QParams(power_2_scale=self.use_power_2_scales))

    def _quantization(self, tensor: str) -> Quantization:
        params = _params_of(self, "fp8_quant", tensor)
        fmt = _fp8("tensor", self.fp8_format, tensor)
        return Quantization(fmt.with_(pow2_scales=params.power_2_scale, epsilon=params.amax_epsilon))


@dataclass(frozen=True)
class MXFP8BlockScaling(Recipe):
    """FP8 with a power of two for each 32 elements.

    Attributes:
        margin: 0; kept for those who pass it.
        fp8_format: E4M3 or HYBRID.
        enable_2d_quantization: whether blocks of weights are 32 x 32.
    """

    margin: int = 0
    fp8_format: Format = Format.E4M3
    enable_2d_quantization: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if integer("margin", self.margin):
            raise ValueError(f"margin is {self.margin}, expected 0: scales of MXFP8 have no margin")
        _fp8_format(self.fp8_format)
        flags(self, "enable_2d_quantization")

    def _quantization(self, tensor: str) -> Quantization:
        element = _element(self.fp8_format, tensor)
        fmt = formats.MXFP8_E4M3 if element is float8_e4m3 else formats.MXFP8_E5M2
        square = self.enable_2d_quantization and tensor == "weight"
        return Quantization(fmt.with_(block=(32, 32)) if square else fmt)


@dataclass(frozen=True)
class Float8BlockScaling(Recipe):
    """FP8 with a float32 scale for each 128 elements, or for each 128 x 128.

    Attributes:
        use_f32_scales: whether scales are any float32, and not powers of two; what QParams that are left out say.
        fp8_format: E4M3 or HYBRID.
        fp8_quant_fwd_inp, fp8_quant_fwd_weight, fp8_quant_bwd_grad: QParams of each tensor.
        x_block_scaling_dim, w_block_scaling_dim, grad_block_scaling_dim: 1 for blocks of 1 x 128 of inputs, weights and
            gradients, 2 for 128 x 128. Of two that are multiplied one is 1.
        fp8_gemm_fprop, fp8_gemm_dgrad, fp8_gemm_wgrad: MMParams of each product, all with the split accumulator.
    """

    use_f32_scales: bool = False
    fp8_format: Format = Format.E4M3
    fp8_quant_fwd_inp: QParams = None  # type: ignore[assignment]
    fp8_quant_fwd_weight: QParams = None  # type: ignore[assignment]
    fp8_quant_bwd_grad: QParams = None  # type: ignore[assignment]
    x_block_scaling_dim: int = 1
    w_block_scaling_dim: int = 2
    grad_block_scaling_dim: int = 1
    fp8_gemm_fprop: MMParams = _EXACT
    fp8_gemm_dgrad: MMParams = _EXACT
    fp8_gemm_wgrad: MMParams = _EXACT

    def __post_init__(self) -> None:
        super().__post_init__()
        flags(self, "use_f32_scales")
        _fp8_format(self.fp8_format)
        _float8_params(self, QParams(power_2_scale=not self.use_f32_scales))
        dims = {f"{name}_block_scaling_dim": getattr(self, f"{name}_block_scaling_dim") for name in ("x", "w", "grad")}
        for name, dim in dims.items():
            if type(dim) is not int or dim not in (1, 2):
                raise ValueError(f"{name} is {dim!r}, expected 1 or 2")
        twice = [name for name, dim in dims.items() if dim == 2]
        if len(twice) > 1:
            raise ValueError(
                f"{' and '.join(twice)} are 2, expected at most one: products take blocks of 1 x 128 of one"
            )
        for name in ("fp8_gemm_fprop", "fp8_gemm_dgrad", "fp8_gemm_wgrad"):
            if not getattr(self, name).use_split_accumulator:
                raise ValueError(f"{name} has use_split_accumulator=False, expected True for Float8BlockScaling")
        if self.fp8_dpa or self.fp8_mha:
            raise ValueError("fp8_dpa or fp8_mha is True, expected False: Float8BlockScaling is not for attention")

    def _quantization(self, tensor: str) -> Quantization:
        params = _params_of(self, "fp8_quant", tensor)
        dim = {"weight": self.w_block_scaling_dim, **dict.fromkeys(BACKWARD_TENSORS, self.grad_block_scaling_dim)}
        word = "1x128" if dim.get(tensor, self.x_block_scaling_dim) == 1 else "128x128"
        fmt = _fp8(word, self.fp8_format, tensor)
        return Quantization(fmt.with_(pow2_scales=params.power_2_scale, epsilon=params.amax_epsilon))


@dataclass(frozen=True)
class NVFP4BlockScaling(Recipe):
    """FP4 with an E4M3 scale for each 16 elements, and one for the tensor.

    As in "Pretraining Large Language Models with NVFP4" (arXiv 2509.25149): blocks of weights are 16 x 16, inputs and
    gradients are transformed before they are quantized along columns, and gradients are rounded at random.

    Attributes:
        disable_rht, disable_stochastic_rounding, disable_2d_quantization: leave these out.
        row_scaled_activation: whether inputs have an amax of each row, in place of one of the tensor.
        nvfp4_4over6: which tensors take the largest element of a block to 4 where that is nearer: "none", "weights",
            "activations" (inputs) or "all" of these.
        nvfp4_4over6_e4m3_use_256: which of those have 256 as the largest scale, and not 448.
        nvfp4_4over6_err_mode: "MAE" or "MSE".
        fp4_format, fp8_format: E2M1 and E4M3.
        fp4_quant_fwd_inp, fp4_quant_fwd_weight, fp4_quant_bwd_grad: the QParams that follow from these.
    """

    disable_rht: bool = False
    disable_stochastic_rounding: bool = False
    disable_2d_quantization: bool = False
    row_scaled_activation: bool = False
    nvfp4_4over6: str = "none"
    nvfp4_4over6_e4m3_use_256: str = "all"
    nvfp4_4over6_err_mode: str = "MAE"
    fp4_format: Format = Format.E2M1
    fp8_format: Format = Format.E4M3

    def __post_init__(self) -> None:
        super().__post_init__()
        flags(self, "disable_rht", "disable_stochastic_rounding", "disable_2d_quantization", "row_scaled_activation")
        choice("nvfp4_4over6", self.nvfp4_4over6, SCOPES)
        choice("nvfp4_4over6_e4m3_use_256", self.nvfp4_4over6_e4m3_use_256, SCOPES)
        choice("nvfp4_4over6_err_mode", self.nvfp4_4over6_err_mode, ("MAE", "MSE"))
        for name, expected in (("fp4_format", Format.E2M1), ("fp8_format", Format.E4M3)):
            if getattr(self, name) is not expected:
                raise ValueError(f"{name} is {getattr(self, name)}, expected {expected} for NVFP4BlockScaling")

    @property
    def fp4_quant_fwd_inp(self) -> QParams:
        """Of inputs."""
        return QParams(random_hadamard_transform=not self.disable_rht)

    @property
    def fp4_quant_fwd_weight(self) -> QParams:
        """Of weights."""
        return QParams(fp4_2d_quantization=not self.disable_2d_quantization)

    @property
    def fp4_quant_bwd_grad(self) -> QParams:
        """Of gradients: they are transformed where inputs are, as both are summed over the same rows."""
        return QParams(
            random_hadamard_transform=not self.disable_rht,
            stochastic_rounding=not self.disable_stochastic_rounding,
        )

    def _quantization(self, tensor: str) -> Quantization:
        params = _params_of(self, "fp4_quant", tensor)
        fmt = formats.NVFP4.with_(block=(16, 16)) if params.fp4_2d_quantization else formats.NVFP4
        if self.row_scaled_activation and tensor in ("input", "output"):
            fmt = fmt.with_(row_amax=True)
        scope = "weights" if tensor == "weight" else "activations"
        if tensor in FORWARD_TENSORS and self.nvfp4_4over6 in (scope, "all"):
            largest = 256.0 if self.nvfp4_4over6_e4m3_use_256 in (scope, "all") else 448.0
            fmt = fmt.with_(four_over_six=self.nvfp4_4over6_err_mode.lower(), largest_scale=largest)
        return Quantization(fmt, hadamard=params.random_hadamard_transform, stochastic=params.stochastic_rounding)


@dataclass(frozen=True)
class CustomRecipe(Recipe):
    """Quantizers that a function makes.

    Attributes:
        qfactory: a function of the role of a tensor (a string such as "input", or an object) that gives its quantizer,
            or a request for one.
        fp8_format: E4M3 or HYBRID; a hint for the function.
        quantization_alignment: what rows of inputs are padded to a multiple of, where modules pad; above 0.
    """

    qfactory: Callable[[Any], Any] = None  # type: ignore[assignment]
    fp8_format: Format = Format.HYBRID
    quantization_alignment: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        _fp8_format(self.fp8_format)
        if integer("quantization_alignment", self.quantization_alignment) < 1:
            raise ValueError(f"quantization_alignment is {self.quantization_alignment}, expected at least 1")


def _element(kind: Format, tensor: str) -> DType:
    return kind.bwd if tensor in BACKWARD_TENSORS else kind.fwd


def _fp8(word: str, kind: Format, tensor: str) -> formats.Format:
    return formats.get_format(f"fp8_{word}_{_element(kind, tensor).name.removeprefix('float8_')}")


def _params_of(recipe: Any, prefix: str, tensor: str) -> QParams:
    slot = "bwd_grad" if tensor in BACKWARD_TENSORS else "fwd_weight" if tensor == "weight" else "fwd_inp"
    return getattr(recipe, f"{prefix}_{slot}")


def _float8_params(recipe: Recipe, default: QParams) -> None:
    """Fills in the QParams that were left out, and refuses what FP8 does not have."""
    for name in ("fp8_quant_fwd_inp", "fp8_quant_fwd_weight", "fp8_quant_bwd_grad"):
        params = getattr(recipe, name)
        if params is None:
            object.__setattr__(recipe, name, default)
            continue
        if not isinstance(params, QParams):
            raise TypeError(f"{name} is {params!r}, expected a QParams")
        for what in ("random_hadamard_transform", "stochastic_rounding", "fp4_2d_quantization"):
            if getattr(params, what):
                raise ValueError(f"{name} has {what}=True, expected False: {type(recipe).__name__} has none")
    for name in ("fp8_gemm_fprop", "fp8_gemm_dgrad", "fp8_gemm_wgrad"):
        if not isinstance(getattr(recipe, name), MMParams):
            raise TypeError(f"{name} is {getattr(recipe, name)!r}, expected an MMParams")


def _fp8_format(kind: Any) -> None:
    if not isinstance(kind, Format):
        raise TypeError(f"fp8_format is {kind!r}, expected Format.E4M3 or Format.HYBRID")
    if kind not in (Format.E4M3, Format.HYBRID):
        raise ValueError(f"fp8_format is {kind}, expected Format.E4M3 or Format.HYBRID")
