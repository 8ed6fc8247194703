"""DLPack into a batch, from a producer made with ctypes: old and new capsules, who frees what and when; and out again."""

import ctypes
import gc
import os
import re

import pytest

import inlaid

INT, FLOAT = 0, 2


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class ManagedVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Tensor)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Producer:
    """A tensor library of one tensor; counts how often its tensor was freed by a consumer."""

    def __init__(self, values, versioned, bits=32, code=INT, device=1, major=1):
        self.values = ({32: ctypes.c_int32, 64: ctypes.c_int64}[bits] * len(values))(*values)
        self.shape = (ctypes.c_int64 * 1)(len(values))
        self.freed = 0
        self.deleter = DELETER(self._free)
        tensor = Tensor(ctypes.cast(self.values, ctypes.c_void_p), device, 0, 1, code, bits, 1, self.shape, None, 0)
        deleter = ctypes.cast(self.deleter, ctypes.c_void_p)
        self.versioned = versioned
        self.managed = ManagedVersioned(major, 0, None, deleter, 0, tensor) if versioned else Managed(tensor, None, deleter)
        self.capsule = new_capsule(ctypes.addressof(self.managed), b"dltensor_versioned" if versioned else b"dltensor", None)

    def _free(self, _):
        self.freed += 1

    def __dlpack__(self, **arguments):
        if not self.versioned and arguments:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        return self.capsule

    @property
    def name(self):
        return re.search('"(.*?)"', repr(self.capsule)).group(1)


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("bits", [32, 64])
def test_taken_once_and_freed_once(parts, versioned, bits):
    model, config, _ = parts
    tokens, targets = Producer([5, 6, 7, 8], versioned, bits), Producer([6, 7, -100, 9], versioned, bits)
    batch = inlaid.Batch(tokens, targets)
    assert tokens.freed == targets.freed == 1  # the values were copied
    assert tokens.name == ("used_dltensor_versioned" if versioned else "used_dltensor")
    with pytest.raises(TypeError):
        inlaid.Batch(tokens)  # a used capsule
    with inlaid.Trainer(model, config) as trainer:
        assert trainer.accumulate(batch)["loss"] == trainer.accumulate(inlaid.Batch([5, 6, 7, 8], [6, 7, -100, 9]))["loss"]
    del batch
    gc.collect()
    assert tokens.freed == 1


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("wrong, message", [({"code": FLOAT}, "int32 or int64"), ({"device": 2}, "host memory"),
                                            ({"major": 2}, "version")])
def test_refused_tensors_stay_with_their_owner(versioned, wrong, message):
    if "major" in wrong and not versioned:
        wrong, message = {"code": FLOAT}, "int32"  # an old tensor has no version
    producer = Producer([1, 2], versioned, **wrong)
    with pytest.raises(inlaid.InvalidArgument) as e:
        inlaid.Batch(producer)
    assert message in str(e.value) and producer.freed == 0
    assert producer.name == ("dltensor_versioned" if versioned else "dltensor")


def test_values_that_do_not_fit():
    with pytest.raises(inlaid.InvalidArgument) as e:
        inlaid.Batch(Producer([1, 2**40], True, 64))
    assert str(2**40) in str(e.value)


@pytest.mark.parametrize("versioned", [False, True])
def test_out_shares_memory_and_outlives_everything(parts, versioned):
    model = parts[0]
    tensor = model.tensor("model.norm.weight")
    expected = tensor.tolist()
    capsules = [tensor.__dlpack__(max_version=(1, 1)) if versioned else tensor.__dlpack__() for _ in range(2)]
    del tensor
    model.close()
    gc.collect()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    kind, name = (ManagedVersioned, b"dltensor_versioned") if versioned else (Managed, b"dltensor")
    views = [kind.from_address(get(c, name)).tensor for c in capsules]
    assert views[0].data == views[1].data and (views[0].code, views[0].bits, views[0].ndim) == (FLOAT, 32, 1)
    del capsules[0]
    gc.collect()
    assert list((ctypes.c_float * views[1].shape[0]).from_address(views[1].data)) == expected


def test_unconsumed_capsules_free_their_memory(parts):
    model = parts[0]

    def resident():
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for versioned in (None, (1, 1)):
        before = resident()
        for _ in range(500):  # 75 kB each
            model.tensor("model.embed_tokens.weight").__dlpack__(max_version=versioned)
        assert resident() - before < 8 << 20
