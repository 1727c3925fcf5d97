"""A user's kernels as operators: in compiled graphs, and with a gradient."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..frameworks import name_in_graphs, traceable
from ..ops.derivatives import Rule


class Operator:
    """A function that launches kernels, as torch knows it; what `dither.torch.operator` makes."""

    __name__: str

    def __init__(
        self,
        fn: Callable[..., Any],
        writes: Sequence[str] = (),
        fake: Callable[..., Any] | None = None,
        backward: Callable[..., Any] | None = None,
    ) -> None:
        """See `operator`."""
        self.fn, self.fake, self._backward = fn, fake or fn, backward
        functools.update_wrapper(self, fn)
        self.__signature__ = inspect.signature(fn)
        self.writes = tuple(writes)
        parameters = self.__signature__.parameters
        for name in self.writes:
            if name not in parameters:
                raise ValueError(f"writes has '{name}', expected parameters of '{self.__name__}'")
        for name, parameter in parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(f"operator '{self.__name__}' takes *{name}, expected named parameters")
        if backward is not None and self.writes:
            raise ValueError(
                f"operator '{self.__name__}' writes '{self.writes[0]}' and has a backward, expected one of the two: "
                "what a kernel writes has no gradient"
            )
        self.graph_name = name_in_graphs(self, f"{fn.__module__}:{fn.__qualname__}")

    def __repr__(self) -> str:
        return f"<dither operator {self.__name__}>"

    @traceable
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)

    def rule(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Rule, dict[str, Any]] | None:
        """Its derivative (ops/derivatives.py), and the arguments of a call by name."""
        backward = self._backward
        if backward is None:
            return None
        arguments = self.__signature__.bind(*args, **kwargs).arguments

        def rule(convert: Any, arguments: Mapping[str, Any], result: Any, grads: Any) -> dict[str, Any]:
            found = backward(grads, result, **arguments)
            if not isinstance(found, Mapping):
                raise TypeError(
                    f"the backward of '{self.__name__}' gives {type(found).__name__}, expected a dictionary of the "
                    "gradients of its arguments by name"
                )
            return dict(found)

        return rule, dict(arguments)


def operator(
    fn: Callable[..., Any] | None = None,
    *,
    writes: Sequence[str] = (),
    fake: Callable[..., Any] | None = None,
    backward: Callable[..., Any] | None = None,
) -> Any:
    """Makes an operator of a function that launches kernels, of `dither.jit` or `dither.fuse`: it can be compiled,
    exported, mapped and differentiated.

        def halved(grad, result, x):
            return {"x": doubled(grad)}

        @dither.torch.operator(backward=halved)
        def doubled(x):
            y = torch.empty_like(x)
            double[x.shape[0] // 16](x, y)
            return y

        torch.compile(lambda x: doubled(x).sum(), fullgraph=True)

    The function takes tensors, quantized tensors, numbers, strings and formats, and returns new tensors, quantized ones
    too, or None. Where torch traces, it runs on tensors of the device "meta", whose extents may be symbols, and its
    launches do nothing.

    Args:
        writes: names of parameters that it writes; operators that write have no gradient.
        fake: what runs in its place where torch traces, for a function that reads its tensors' values, or branches on
            extents; it returns the like.
        backward: `backward(grad, result, **arguments)`, `grad` that of the result and of its structure, with None for
            what no gradient reaches but the first tensor. It gives a dictionary of the gradients of arguments by name,
            which may leave out those that have none.

    Raises TypeError or ValueError for parameters that are not named ones.
    """
    if fn is None:
        return functools.partial(operator, writes=writes, fake=fake, backward=backward)
    return Operator(fn, writes, fake, backward)
