"""Exceptions: one class per status code of the C API, each also the built-in that a Python programmer would catch."""

from __future__ import annotations

import json
from typing import Any, Dict


class Error(Exception):
    """An error of the library. `code` is its status code by name, `details` is machine-readable context."""

    code = "UNKNOWN"

    def __init__(self, message: str = "", details: Dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details: Dict[str, Any] = details or {}

    def __str__(self) -> str:
        return self.message

    def __reduce__(self):  # OSError, a base of some subclasses, would lose the details
        return type(self), (self.message, self.details)


class Cancelled(Error):
    code = "CANCELLED"


class InvalidArgument(Error, ValueError):
    code = "INVALID_ARGUMENT"


class DeadlineExceeded(Error, TimeoutError):
    code = "DEADLINE_EXCEEDED"


class NotFound(Error, FileNotFoundError):
    code = "NOT_FOUND"


class AlreadyExists(Error, FileExistsError):
    code = "ALREADY_EXISTS"


class PermissionDenied(Error, PermissionError):
    code = "PERMISSION_DENIED"


class ResourceExhausted(Error, MemoryError):
    """Out of host or device memory, over a memory limit, or the disk is full."""

    code = "RESOURCE_EXHAUSTED"


class FailedPrecondition(Error, RuntimeError):
    """Wrong state: closed, in use by another thread, inherited through fork(), changed files on resume."""

    code = "FAILED_PRECONDITION"


class Aborted(Error):
    code = "ABORTED"


class OutOfRange(Error, IndexError):
    code = "OUT_OF_RANGE"


class Unimplemented(Error, NotImplementedError):
    code = "UNIMPLEMENTED"


class Internal(Error, RuntimeError):
    code = "INTERNAL"


class Unavailable(Error):
    code = "UNAVAILABLE"


class DataLoss(Error):
    """A file is damaged: checksum mismatch, truncated, inconsistent."""

    code = "DATA_LOSS"


class Unauthenticated(Error):
    code = "UNAUTHENTICATED"


# By the numbers of inlaid.h; 2 is UNKNOWN, and so is every number that this version does not know.
_CLASSES = {
    1: Cancelled, 3: InvalidArgument, 4: DeadlineExceeded, 5: NotFound, 6: AlreadyExists, 7: PermissionDenied,
    8: ResourceExhausted, 9: FailedPrecondition, 10: Aborted, 11: OutOfRange, 12: Unimplemented, 13: Internal,
    14: Unavailable, 15: DataLoss, 16: Unauthenticated,
}


def from_c(code: int, message: str, details: str) -> Error:
    """The exception of an inlaid_error; called by the generated layer."""
    return _CLASSES.get(code, Error)(message, json.loads(details))
