"""A DLPack producer that depends on no library: tensors with whatever fields a test wants."""

import ctypes

import numpy as np

VERSIONED = b"dltensor_versioned"
LEGACY = b"dltensor"
READ_ONLY = 1


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("ordinal", ctypes.c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("rank", ctypes.c_int32),
        ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


class _ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


#: What was handed out stays until the process ends: a consumer may let go of it when this module's objects are gone.
_handed_out = []


class Producer:
    """A NumPy array's memory as a tensor of DLPack type `dtype` = (code, bits, lanes).

    `deleted` counts calls of the deleter. `major` is 0 for producers from before version 1.0, which take no
    arguments either. `dense` leaves the strides out.
    """

    def __init__(self, memory, dtype, major=1, flags=0, device=(1, 0), offset=0, dense=False, shape=None):
        self.memory = np.asarray(memory)
        self.dtype, self.major, self.flags, self.device, self.dense = dtype, major, flags, device, dense
        self.offset = offset
        self.shape = self.memory.shape if shape is None else shape
        self.deleted = self.handed_out = 0

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **asked):
        if self.major == 0 and asked:
            raise TypeError("__dlpack__() got an unexpected keyword argument")
        rank = len(self.shape)
        shape = (ctypes.c_int64 * rank)(*self.shape)
        strides = None
        if not self.dense:
            strides = (ctypes.c_int64 * rank)(*(s // self.memory.itemsize for s in self.memory.strides))
        tensor = _Tensor(
            self.memory.ctypes.data - self.offset,
            _Device(*self.device),
            rank,
            _Type(*self.dtype),
            shape,
            strides,
            self.offset,
        )
        deleter = _Deleter(self._delete)
        if self.major:
            managed = _ManagedVersioned(self.major, 0, None, deleter, self.flags, tensor)
        else:
            managed = _Managed(tensor, None, deleter)
        self.handed_out += 1
        _handed_out.append((self, managed, shape, strides, deleter))
        name = VERSIONED if self.major else LEGACY
        return _new_capsule(ctypes.addressof(managed), name, None)

    def _delete(self, _):
        self.deleted += 1
