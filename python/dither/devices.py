"""The devices that kernels run on."""

from __future__ import annotations

import ctypes
from typing import Any

from . import knobs
from .errors import suggest


class Device:
    """A CPU or GPU. `name` is "cpu" or "cuda:0", `target` what kernels are compiled for."""

    #: Which part of tensors is on it, where the rest is elsewhere (recording.py).
    shard: Any = None

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self.name: str = handle.name
        self.description: str = handle.description
        self.target: str = handle.target
        self.is_cpu = self.name == "cpu"

    def __repr__(self) -> str:
        return f"<dither device {self.name}: {self.description}, {self.target}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return get_device, (self.name,)

    def load(self, image: Any) -> Any:
        """A kernel image made ready to launch here."""
        return self._handle.load(image)

    def allocate(self, nbytes: int) -> int:
        """The address of uninitialised memory of this device."""
        return self._handle.allocate(nbytes)

    def release(self, pointer: int) -> None:
        """Gives memory of `allocate` back."""
        self._handle.release(pointer)

    def write(self, pointer: int, data: bytes) -> None:
        """Copies bytes into memory of this device."""
        source = (ctypes.c_char * len(data)).from_buffer_copy(data)
        self._handle.copy_in(pointer, ctypes.addressof(source), len(data))

    def copy_in(self, pointer: int, host: int, nbytes: int) -> None:
        """Copies bytes of the host to this device."""
        self._handle.copy_in(pointer, host, nbytes)

    def copy_out(self, host: int, pointer: int, nbytes: int) -> None:
        """Copies bytes of this device to the host."""
        self._handle.copy_out(host, pointer, nbytes)

    def synchronize(self, stream: int = 0) -> None:
        """Waits for what was launched on a stream."""
        self._handle.synchronize(stream)


_devices: dict[str, Device] = {}
#: Devices that run what is meant for another one, by its name; see `dither.profile.record`.
stand_ins: dict[str, Device] = {}


def get_device(device: str | Device) -> Device:
    """The device of that name. Raises ValueError where there is none, with the reason."""
    if isinstance(device, Device):
        return device
    if not isinstance(device, str):
        raise TypeError(f"device is {device!r}, expected a device or its name")
    found = stand_ins.get(device) or _devices.get(device)
    if found is None:
        from . import _dither

        try:
            made = Device(_dither.get_device(device.encode("utf-8", "replace").decode()))
        except _dither.RuntimeFailure as error:
            raise ValueError(f"device {device!r}: {error}") from None
        found = _devices.setdefault(device, made)
    return found


def add_device(device: Device) -> None:
    """Makes a device known by its name, which no other has."""
    _devices[device.name] = device


def remove_device(device: Device) -> None:
    """The inverse of `add_device`."""
    del _devices[device.name]


def devices() -> list[Device]:
    """Every device of this machine, the CPU first."""
    from . import _dither

    return [get_device(handle.name) for handle in _dither.list_devices()[0]]


def default_device() -> Device:
    """What DITHER_DEVICE names, else the first GPU, else the CPU."""
    asked = knobs.get("device")
    return get_device(asked) if asked else devices()[-1 if len(devices()) == 1 else 1]


def chosen_device(asked: str | Device | None, memory: str) -> Device:
    """Where a call runs: as asked, else where its tensors are, the device of this name. Memory of the CPU is that of
    simulated GPUs, too: those run it that DITHER_DEVICE names."""
    if asked is not None:
        return get_device(asked)
    default = knobs.get("device") if memory == "cpu" else ""
    device = get_device(default) if default else None
    return device if device is not None and device.name.startswith("sim:") else get_device(memory)


def why_no_gpu() -> str:
    """Why there is no CUDA device; empty where there is one."""
    from . import _dither

    return _dither.list_devices()[1]


def host_target() -> str:
    """The target for this machine's CPU, of the level that DITHER_HOST_FEATURES asks for."""
    from . import _dither

    asked = knobs.get("host_features")
    return _dither.host_target() if asked == "auto" else f"host:{asked}"


def checked_target(name: str | None) -> str:
    """The target of that name; that of this machine's CPU for None and "host". Raises ValueError for what is none."""
    if name is None or (isinstance(name, str) and name == "host"):
        return host_target()
    known = targets()
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"unknown target {name!r}, expected {', '.join(known)}{suggest(name, known)}")
    return name


def is_gpu(target: str) -> bool:
    """Whether a target is a GPU. Raises ValueError for what is no target."""
    from . import _dither

    return _dither.is_gpu(target)


def fast_memory(target: str) -> bool:
    """Whether a target's memory is fast beside its arithmetic, HBM. Raises ValueError for what is no target."""
    from . import _dither

    return _dither.fast_memory(target)


def shared_bytes(target: str) -> int:
    """Bytes of shared memory that a thread block of a target may have, 0 on a CPU. Raises ValueError for what is no
    target."""
    from . import _dither

    return _dither.shared_bytes(target)


def targets() -> list[str]:
    """Every target that kernels can be compiled for, on any machine."""
    from . import _dither

    return _dither.target_names()
