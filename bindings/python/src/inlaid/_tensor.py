"""A weight or an output as a tensor, for torch.from_dlpack, numpy.from_dlpack or plain Python."""

from __future__ import annotations

from typing import Any, Tuple

from . import _inlaid

_HOST = (1, 0)


class Tensor:
    """float32 in host memory: a copy of a weight, or an output of a Pass. Consumers of __dlpack__ share this memory and keep it alive."""

    dtype = "float32"

    def __init__(self, capsule) -> None:
        self._capsule = capsule
        self.shape: Tuple[int, ...] = _inlaid.tensor_shape(capsule)

    def __dlpack__(self, *, stream: Any = None, max_version: Tuple[int, int] | None = None,
                   dl_device: Tuple[int, int] | None = None, copy: bool | None = None):
        if stream is not None:
            raise BufferError("a tensor in host memory has no stream")
        if dl_device is not None and tuple(dl_device) != _HOST:
            raise BufferError("the tensor is in host memory and is not copied to another device")
        if copy:
            raise BufferError("the tensor is shared, not copied")
        return _inlaid.tensor_dlpack(self._capsule, max_version is not None and max_version[0] >= 1)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return _HOST

    def memoryview(self) -> memoryview:
        """A copy of the values as a read-only memoryview of floats."""
        view = memoryview(_inlaid.tensor_bytes(self._capsule))
        return view.cast("f", list(self.shape)) if self.shape else view.cast("f")

    def tolist(self) -> list:
        return self.memoryview().tolist()

    def __repr__(self) -> str:
        return f"<inlaid.Tensor float32 {list(self.shape)}>"
