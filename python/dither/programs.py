"""Programs: the launches of a call, without the call.

`record` runs a call on tensors that are only described, and keeps what it launches: kernels with their grids, which
buffer each argument is, and a workspace for what lies between. A program runs on memory given later, with no Python in
between: from JAX as a custom call, from C, or from here.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .arrays import Array, Buffer, describe_argument
from .data_classes import dataclass
from .devices import Device, checked_target, get_device
from .recording import Collective, Launch, Recording, Splitting, nbytes
from .types import TensorType

if TYPE_CHECKING:
    from .compiled import Compiled

#: What places in the workspace are multiples of, in bytes.
_ALIGNED = 256


@dataclass(frozen=True)
class Place:
    """A tensor of a program: among its `inputs` or its `outputs`."""

    kind: str
    index: int


@dataclass(frozen=True)
class Tensor:
    """What is known of an input or output: its shape, its data type by the name that NumPy and ml_dtypes have for it,
    or dither's where they have none, and its bytes."""

    shape: tuple[int, ...]
    dtype: str
    nbytes: int


@dataclass(frozen=True, eq=False)
class Program:
    """What a call launches.

    Attributes:
        target: what its code is for.
        inputs: the tensors among the arguments, in order.
        outputs: what it allocates and returns, in order.
        result: what the call returns, with a `Place` for each tensor.
        updated: places of the inputs that it writes, in place.
        workspace: bytes that it needs besides, aligned to 256.
        launches: how many kernels it launches.
        splitting: how its tensors may be split into parts, by places among the inputs and the outputs after them; None
            where that is not known.
    """

    target: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    result: Any
    updated: tuple[int, ...]
    workspace: int
    launches: int
    splitting: Splitting | None
    _program: Any

    def encode(self) -> bytes:
        """The program as bytes, code included, which any process with the same version of dither runs. Its buffers are
        the inputs, the outputs and, where it needs one, the workspace.

        They are code: run none of a source that you do not trust.
        """
        encoded: bytes = self._program.encode()
        return encoded

    def run(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        workspace: Any = None,
        device: str | Device | None = None,
        stream: int = 0,
    ) -> None:
        """Runs it on arrays of the device, dense and of the recorded sizes; `workspace` is one of at least so many
        bytes. Raises TypeError or ValueError for others."""
        named = []
        for what, given, own in (("inputs", inputs, self.inputs), ("outputs", outputs, self.outputs)):
            if len(given) != len(own):
                raise ValueError(f"found {len(given)} {what}, expected {len(own)}")
            named += [(f"{what}[{i}]", value, own[i].nbytes) for i, value in enumerate(given)]
        if self.workspace:
            named.append(("workspace", workspace, self.workspace))
        addresses = [_address(*each) for each in named]
        where = get_device("cpu" if device is None else device)
        self._loaded(where).run(addresses, stream)

    @functools.cached_property
    def _on(self) -> dict[str, Any]:
        return {}

    def _loaded(self, where: Device) -> Any:
        from . import _dither

        if where.name not in self._on:
            self._on[where.name] = _dither.LoadedProgram(self._program, where._handle)
        return self._on[where.name]


def _address(name: str, value: Any, expected: int) -> int:
    array = describe_argument(name, value)
    if array is None:
        raise TypeError(f"argument '{name}' is {type(value).__name__}, expected an array")
    if nbytes(array) < expected:
        raise ValueError(f"argument '{name}' has {nbytes(array)} bytes, expected {expected}")
    return array.pointer


def record(fn: Callable[..., Any], *args: Any, target: str | None = None, **kwargs: Any) -> Program:
    """The program of `fn(*args, **kwargs)`, where each `dither.TensorType` among the arguments, of known extents, is a
    dense tensor: in tuples, lists, dictionaries and dataclasses too. `fn` is an operator of dither, or a function that
    calls some, or launches kernels, and returns what they gave.

        program = dither.record(dither.quantize, dither.TensorType(dither.bfloat16, (4096, 1024)), "nvfp4")
        program.workspace                                   # bytes, a function of shapes and target

    `target` is a name of `dither.targets()`, which need not be of this machine; None is its CPU. Raises what `fn`
    raises, and CompileError.
    """
    with Recording(checked_target(target)) as recording:
        inputs: list[Buffer] = []

        def placed(value: Any) -> Any:
            if not isinstance(value, TensorType):
                return value
            if any(extent is None for extent in value.shape):
                raise ValueError(f"found {value}, expected known extents")
            shape = tuple(extent for extent in value.shape if extent is not None)
            if value.dtype.bits == 4 and shape:
                shape = (*shape[:-1], (shape[-1] + 1) // 2)
            inputs.append(recording.empty(None if value.dtype.bits == 4 else value.dtype, shape))
            return inputs[-1]

        args, kwargs = map_leaves(placed, args), map_leaves(placed, kwargs)
        return finish(recording, inputs, fn(*args, **kwargs))


def finish(recording: Recording, inputs: Iterable[Buffer], returned: Any) -> Program:
    """The program of what was recorded: a call on `inputs`, the first buffers, that returned `returned`."""
    given = [buffer.array for buffer in inputs]
    made, result = results_of(recording, len(given), returned)
    launches = [launch for launch in recording.launches if isinstance(launch, Launch)]
    assert len(launches) == len(recording.launches), "a call on a part of a tensor is of stages"
    return _program(recording, launches, given, made, result)


@dataclass(frozen=True, eq=False)
class Stages:
    """A call on a part of a tensor: programs, and what parts exchange between them. Buffers go by numbers.

    Attributes:
        steps: in order, a program with the buffers that are its inputs and its outputs, or a `Collective`.
        outputs: the buffers of what the call allocates and returns, in order.
        result: what it returns, with a `Place` for each tensor.
        shapes: those of the outputs that the operator's `Splitting` names.
        extents: rows and columns of the part, where they are known.
        splitting: how its tensors may be split, as of a `Program`.
    """

    steps: tuple[tuple[Program, tuple[int, ...], tuple[int, ...]] | Collective, ...]
    outputs: tuple[int, ...]
    result: Any
    shapes: tuple[tuple[int, ...], ...]
    extents: tuple[int, int]
    splitting: Splitting | None

    @staticmethod
    def index(array: Array) -> int:
        """The number of the buffer that an array is in."""
        return _index(array)


def staged(recording: Recording, inputs: Iterable[Buffer], returned: Any) -> Stages:
    """As `finish`, of a call whose tensors are parts of others (`Recording.shard`)."""
    given = [buffer.array for buffer in inputs]
    made, result = results_of(recording, len(given), returned)
    known = {_index(array): array for array in given}
    returned_as = {_index(array): array for array in made}
    outputs = list(returned_as)
    runs: list[list[Launch]] = [[]]
    between: list[Collective] = []
    for each in recording.launches:
        if isinstance(each, Launch):
            runs[-1].append(each)
        else:
            between.append(each)
            runs.append([])
    used = [{i: a for launch in run for i, a in _tensors(launch).items()} for run in runs]
    steps: list[tuple[Program, tuple[int, ...], tuple[int, ...]] | Collective] = []
    for at, run in enumerate(runs):
        later = {i for tensors in used[at + 1 :] for i in tensors} | set(outputs)
        later |= {_index(each.source) for each in between[at:]}
        written = {i for launch in run for i in _written(launch)}
        taken = [i for i in used[at] if i in known]
        if any(i in written for i in taken):
            raise ValueError("found a call that writes what others have exchanged, expected memory of its own")
        stored = [i for i in used[at] if i in written and i in later]
        arrays = {i: returned_as.get(i) or _whole(recording, i, array) for i, array in used[at].items()}
        ins, outs = [known[i] for i in taken], [arrays[i] for i in stored]
        if run:
            steps.append((_program(recording, run, ins, outs, None), tuple(taken), tuple(stored)))
            known |= dict(zip(stored, outs, strict=True))
        if at < len(between):
            steps.append(between[at])
            known[_index(between[at].target)] = between[at].target
    found = recording.splittings[0] if recording.splittings else None
    shapes = [(found.shapes if found else {}).get(_index(array), array.shape) for array in made]
    extents = found.extents if found else {}
    rows, cols = (math.prod(n for label, n in extents.items() if label[:3] == what) for what in ("row", "col"))
    splitting = _splitting(recording, given, made)
    return Stages(tuple(steps), tuple(outputs), result, tuple(shapes), (rows, cols), splitting)


def _whole(recording: Recording, index: int, array: Array) -> Array:
    """The buffer that an array is in, as bytes of one dimension unless the array is all of it, of whole bytes."""
    is_all = Recording.place(array.pointer)[1] == 0 and nbytes(array) == recording.sizes[index]
    if is_all and (array.dtype is None or array.dtype.bits >= 8):
        return array
    size = recording.sizes[index]
    first = array.pointer - Recording.place(array.pointer)[1]
    return dataclasses.replace(array, pointer=first, dtype=None, storage="uint8", shape=(size,), strides=(1,))


def _index(array: Array) -> int:
    return Recording.place(array.pointer)[0]


def _tensors(launch: Launch) -> dict[int, Array]:
    """The arrays of a launch by their buffers: one of each."""
    arrays = [value for value in launch.arguments.values() if isinstance(value, Array)]
    return {_index(array): array for array in arrays if _index(array) >= 0}


def _written(launch: Launch) -> Iterable[int]:
    """The buffers that a launch writes."""
    return (_index(launch.arguments[name]) for name in launch.code().written)


def results_of(recording: Recording, given: int, returned: Any) -> tuple[list[Array], Any]:
    """The arrays that a call allocated and returned, and what it returned, with a `Place` for each tensor; the first
    `given` buffers are its inputs."""
    made: list[Array] = []

    def place_of(value: Any) -> Any:
        array = value if isinstance(value, Array) else value.array if isinstance(value, Buffer) else None
        if array is None:
            return value
        index, offset = Recording.place(array.pointer)
        if offset or nbytes(array) != recording.sizes[index]:
            raise ValueError("found a part of an array among the results of a recorded call, expected whole arrays")
        if index < given:
            return Place("inputs", index)
        for i, other in enumerate(made):
            if other.pointer == array.pointer:
                return Place("outputs", i)
        made.append(array)
        return Place("outputs", len(made) - 1)

    result = map_leaves(place_of, returned)
    return made, result


def _program(
    recording: Recording, launches: Sequence[Launch], given: Sequence[Array], made: Sequence[Array], result: Any
) -> Program:
    """The program of launches, on arrays that are its inputs and its outputs."""
    found = steps_of(recording, launches, given, made)
    images = list({id(code): code.image for code in found.codes}.values())
    steps = [
        (images.index(code.image), launch.grid, *slots)
        for launch, code, slots in zip(launches, found.codes, found.slots, strict=True)
    ]
    sizes = [recording.sizes[_index(array)] for array in (*given, *made)]
    from . import _dither

    return Program(
        recording.target,
        tuple(_tensor(array) for array in given),
        tuple(_tensor(array) for array in made),
        result,
        found.updated,
        found.workspace,
        len(steps),
        _splitting(recording, given, made),
        _dither.Program(
            images, sizes + ([found.workspace] if found.workspace else []), steps, int(found.workspace > 0)
        ),
    )


@dataclass(frozen=True)
class Steps:
    """What launches on inputs and outputs are.

    Attributes:
        codes: of each launch.
        slots: of each, what is passed, and (slot, buffer) of those that are bytes from the start of a buffer: an input,
            an output after these, or the workspace at the end.
        updated: places of the inputs that are written.
        workspace: bytes of what lies between.
    """

    codes: tuple[Compiled, ...]
    slots: tuple[tuple[list[int], list[tuple[int, int]]], ...]
    updated: tuple[int, ...]
    workspace: int


def steps_of(recording: Recording, launches: Sequence[Launch], given: Sequence[Array], made: Sequence[Array]) -> Steps:
    """The steps of launches, on arrays that are their inputs and their outputs."""
    codes = tuple(launch.code() for launch in launches)
    for code in codes:
        if code.sites:
            raise ValueError(f"kernel '{code.image.name}' has dl.print, which recorded calls have not")
    written = {index for launch in launches for index in _written(launch)}
    for launch, code in zip(launches, codes, strict=True):
        code.check(launch.arguments)
    named = {_index(array): i for i, array in enumerate([*given, *made])}
    offsets, workspace = _workspace(recording, launches, named)
    slots = tuple(
        _slots(launch, code, named, offsets, len(named)) for launch, code in zip(launches, codes, strict=True)
    )
    updated = tuple(i for i, array in enumerate(given) if _index(array) in written)
    return Steps(codes, slots, updated, workspace)


def _splitting(recording: Recording, given: Sequence[Array], made: Sequence[Array]) -> Splitting | None:
    """How the tensors of a call may be split: as its one operator says, of all that it returns. Each part has all of an
    input that it says nothing of."""
    arrays = [*given, *made]
    if len(recording.splittings) != 1 or any(0 in array.shape for array in arrays):
        return None
    found = recording.splittings[0]
    if any(_index(array) not in found.labels for array in made):
        return None
    shapes = [found.shapes.get(_index(array), array.shape) for array in arrays]
    labels = [found.labels.get(_index(array), (None,) * len(array.shape)) for array in arrays]
    if any(len(label) != len(shape) for label, shape in zip(labels, shapes, strict=True)):
        return None
    return dataclasses.replace(found, labels=dict(enumerate(labels)), shapes=dict(enumerate(shapes)))


def _tensor(array: Array) -> Tensor:
    return Tensor(array.shape, array.storage, nbytes(array))


def _slots(
    launch: Launch, code: Compiled, named: dict[int, int], offsets: dict[int, int], workspace: int
) -> tuple[list[int], list[tuple[int, int]]]:
    """The slots of a step, as of `Steps`; `workspace` is the place of that buffer."""
    slots = code.slots(launch.arguments)
    pointers = []
    for slot, kind in enumerate(code.image.params):
        if kind != "ptr":
            continue
        index, offset = Recording.place(slots[slot])
        if index < 0:  # of no elements, wherever it is
            slots[slot] = 0
            continue
        slots[slot] = offset + offsets.get(index, 0)
        pointers.append((slot, named.get(index, workspace)))
    return slots, pointers


def _workspace(recording: Recording, launches: Sequence[Launch], named: dict[int, int]) -> tuple[dict[int, int], int]:
    """Where the buffers lie in the workspace that are neither inputs nor outputs, and its size: those that are not in
    use at the same time share memory."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for at, launch in enumerate(launches):
        for value in launch.arguments.values():
            index = Recording.place(value.pointer)[0] if isinstance(value, Array) else -1
            if index >= 0 and index not in named:
                first.setdefault(index, at)
                last[index] = at
    offsets: dict[int, int] = {}
    for index in sorted(first, key=lambda index: -recording.sizes[index]):
        taken = sorted(
            (offsets[other], offsets[other] + recording.sizes[other])
            for other in offsets
            if first[other] <= last[index] and first[index] <= last[other]
        )
        at = 0
        for begin, end in taken:
            if at + recording.sizes[index] <= begin:
                break
            at = max(at, -(-end // _ALIGNED) * _ALIGNED)
        offsets[index] = at
    return offsets, max((at + recording.sizes[index] for index, at in offsets.items()), default=0)


def map_leaves(change: Callable[[Any], Any], value: Any, others: Mapping[int, Any] | None = None) -> Any:
    """A value with other leaves: tuples, lists, dictionaries and dataclasses are taken apart, arrays and places are
    not. In place of those whose `id` is in `others`, these are."""
    if others and id(value) in others:
        value = others[id(value)]
    if isinstance(value, (Buffer, Array, TensorType, Place)):
        return change(value)
    if isinstance(value, (tuple, list)):
        items = [map_leaves(change, each, others) for each in value]
        if hasattr(value, "_fields"):
            return type(value)(*items)
        return type(value)(items)
    if isinstance(value, dict):
        return {name: map_leaves(change, each, others) for name, each in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        changed = {name: map_leaves(change, each, others) for name, each in fields.items()}
        if all(changed[name] is fields[name] for name in fields):
            return value
        return dataclasses.replace(value, **changed)
    return change(value)
