"""dither.data_classes: what `dataclasses` makes of the same classes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle

import pytest
from dither import data_classes


def plain(made):
    @made
    class Plain:
        """Fields of all kinds."""

        a: int
        b: str = "b"
        c: list = dataclasses.field(default_factory=list, repr=False)
        d: float = dataclasses.field(default=2.0, compare=False)

    return Plain


def keyword(made):
    @made(frozen=True, kw_only=True)
    class Keyword:
        a: int = 1
        b: int

    return Keyword


def checked(made):
    @made(frozen=True)
    class Checked:
        a: int
        b: tuple = dataclasses.field(default=(), hash=False)

        def __post_init__(self):
            if self.a < 0:
                raise ValueError(f"a is {self.a}, expected at least 0")
            object.__setattr__(self, "b", tuple(self.b))

        def __repr__(self):
            return f"<{self.a}>"

    return Checked


def unlike(made):
    @made(frozen=True, eq=False, repr=False)
    class Unlike:
        a: int

    return Unlike


def own(made):
    @made
    class Own:
        a: int

        def __eq__(self, other):
            return True

    return Own


def empty(made):
    @made(frozen=True)
    class Empty:
        pass

    return Empty


def derived(made):
    @made(frozen=True)
    class Base:
        a: int
        b: int = 2

    @made(frozen=True)
    class Derived(Base):
        c: int = 3

    return Derived


CLASSES = {f.__name__: f for f in (plain, keyword, checked, unlike, own, empty, derived)}
#: Arguments of two objects that differ in what is compared.
VALUES = {
    "plain": ({"a": 1}, {"a": 2, "c": [1], "d": 4.0}),
    "keyword": ({"b": 1}, {"a": 3, "b": 4}),
    "checked": ({"a": 1, "b": [2]}, {"a": 1, "b": [3]}),
    "unlike": ({"a": 1}, {"a": 1}),
    "own": ({"a": 1}, {"a": 2}),
    "empty": ({}, {}),
    "derived": ({"a": 1}, {"a": 1, "b": 3, "c": 4}),
}


def outcome(work):
    """What a call gives, or the class of its error and its text."""
    try:
        return work()
    except Exception as error:
        return type(error), str(error)


def refusal(work):
    """The class of a call's error and its text, or None."""
    found = outcome(work)
    return found if isinstance(found, tuple) else None


@pytest.mark.parametrize("name", CLASSES)
def test_same_as_dataclasses(name):
    ours, theirs = CLASSES[name](data_classes.dataclass), CLASSES[name](dataclasses.dataclass)
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    assert ours.__match_args__ == theirs.__match_args__
    assert [(f.name, f.type) for f in dataclasses.fields(ours)] == [
        (f.name, f.type) for f in dataclasses.fields(theirs)
    ]
    for attribute in ("init", "repr", "eq", "frozen"):
        assert getattr(ours.__dataclass_params__, attribute) == getattr(theirs.__dataclass_params__, attribute)
    one, other = VALUES[name]
    found = []
    for kind in (ours, theirs):
        a, b, same = kind(**one), kind(**other), kind(**one)
        found.append(
            {
                "values": [dataclasses.asdict(a), dataclasses.asdict(b)],
                "equal": [a == b, a == same, a != b, a == 1, a == a],
                "hash": [outcome(lambda a=a, same=same: hash(a) == hash(same)) is True, kind.__hash__ is None],
                "repr": [outcome(lambda a=a: repr(a).partition(" object at ")[0]), kind.__eq__ is object.__eq__],
                "copies": [copy.copy(a) == a, copy.deepcopy(a) == a],
                "replaced": outcome(lambda a=a: dataclasses.asdict(dataclasses.replace(a, a=7))),
                "wrong": [
                    refusal(lambda kind=kind: kind(**one, nothing=1)),
                    refusal(lambda kind=kind: kind(1, 2, 3, 4, 5, 6)),
                    refusal(lambda kind=kind: kind(a=-1)),
                    refusal(lambda a=a: setattr(a, "a", 5)),
                    refusal(lambda a=a: delattr(a, "a")),
                ],
            }
        )
    assert found[0] == found[1]


@pytest.mark.parametrize("made", [data_classes.dataclass, dataclasses.dataclass])
def test_what_derives_from_a_frozen_one(made):
    """It has its own attributes, and no other fields."""

    class Plain(checked(made)):
        pass

    one = Plain(1)
    one.more = 2
    assert one.more == 2
    del one.more
    for change in (lambda: setattr(one, "a", 2), lambda: delattr(one, "a")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()


def test_defaults_are_made_anew():
    kind = plain(data_classes.dataclass)
    kind(1).c.append(2)
    assert kind(1).c == []


def test_a_loop_of_objects_is_shown():
    kind = plain(data_classes.dataclass)
    one = kind(1)
    one.b = one
    assert repr(one).endswith("(a=1, b=..., d=2.0)")


@data_classes.dataclass(frozen=True)
class Module:
    """Pickled by the name of its module."""

    a: int


def test_pickle():
    assert pickle.loads(pickle.dumps(Module(3))) == Module(3)
