"""What there is one of, however many threads ask for it."""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
_all: weakref.WeakSet[OncePerKey] = weakref.WeakSet()


class _Running:
    """Work under way: waiters get its result or its error."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None


class OncePerKey:
    """A dictionary whose values are made when they are first asked for, each by one thread.

    Threads that ask for a value under way wait for it and get the same error if it fails; a later one tries anew. Other
    keys are not held up. A child made by fork starts without what its parent's threads had under way.
    """

    def __init__(self) -> None:
        self._values: dict[Any, Any] = {}
        self._running: dict[Any, _Running] = {}
        self._lock = threading.Lock()
        _all.add(self)

    def get(self, key: Any) -> Any:
        """The value, or None."""
        return self._values.get(key)

    def clear(self) -> None:
        """Forgets every value."""
        with self._lock:
            self._values.clear()

    def make(self, key: Any, work: Callable[[], Any]) -> Any:
        """The value of a key, made by `work` where there is none."""
        with self._lock:
            if key in self._values:
                return self._values[key]
            running = self._running.get(key)
            first = running is None
            if running is None:
                running = self._running[key] = _Running()
        if not first:
            running.done.wait()
            if running.error is not None:
                raise running.error
            return running.result
        try:
            running.result = work()
        except BaseException as error:
            # What ends this thread is not the others' error: they find a reason that they can act on.
            ours = isinstance(error, Exception)
            running.error = error if ours else RuntimeError("the thread that compiled this was interrupted: try again")
            raise
        finally:
            with self._lock:
                if running.error is None:
                    self._values[key] = running.result
                self._running.pop(key, None)
            running.done.set()
        return running.result

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._running.clear()


class one_property(functools.cached_property[_T]):
    """As `functools.cached_property`, which may give threads that ask first at once a value each (from Python 3.12 on).
    Here one of these is kept, and all of them get it."""

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        if instance is None:
            return self
        values, name = instance.__dict__, self.attrname
        return values[name] if name in values else values.setdefault(name, self.func(instance))


def one_for_each(make: Callable[_P, _T]) -> Callable[_P, _T]:
    """As `functools.cache` of a function of positional arguments, likewise."""
    values: dict[Any, _T] = {}

    @functools.wraps(make)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        assert not kwargs
        return values[args] if args in values else values.setdefault(args, make(*args, **kwargs))

    return call


def _reset() -> None:
    for each in list(_all):
        each._after_fork()


os.register_at_fork(after_in_child=_reset)
