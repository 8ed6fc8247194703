"""What all objects that stand for a handle of the library have in common: close(), `with`, the check after fork().

The generated layer gives handles as capsules that release themselves with their last reference, and a call in progress
holds one. So close() only drops this object's reference: it never blocks, and closing in one thread what another thread
uses is safe. An object that is merely dropped is released, too; those that hold threads or much memory then warn with
ResourceWarning, as files do.
"""

from __future__ import annotations

import os
import warnings

from ._errors import FailedPrecondition

# Grows by one in a forked child, where the threads and locks behind inherited handles do not exist.
_generation = [0]


def _after_fork_in_child() -> None:
    _generation[0] += 1


os.register_at_fork(after_in_child=_after_fork_in_child)


class Handle:
    """Base of the public classes; not for direct use."""

    _capsule = None
    _born = 0
    _warn_when_dropped = False

    def _adopt(self, capsule):
        self._capsule = capsule
        self._born = _generation[0]
        return self

    @classmethod
    def _of(cls, capsule):
        """An object of this class around a capsule that a function of the library returned; None for None."""
        return None if capsule is None else cls.__new__(cls)._adopt(capsule)

    @property
    def _c(self):
        """The capsule to pass to the generated layer."""
        capsule = self._capsule
        if capsule is None:
            raise FailedPrecondition(f"this {type(self).__name__} is closed")
        if self._born != _generation[0]:
            raise FailedPrecondition(f"this {type(self).__name__} was created before fork(); "
                                     "a child process must create its own Runtime")
        return capsule

    @property
    def closed(self) -> bool:
        return self._capsule is None

    def close(self) -> None:
        """Gives the handle up; what was made from it keeps what it needs. Using this object afterwards raises."""
        self._capsule = None

    def __enter__(self):
        self._c
        return self

    def __exit__(self, *exc_info) -> None:
        self.close()

    def __del__(self, _warn=warnings.warn) -> None:
        if self._warn_when_dropped and self._capsule is not None and self._born == _generation[0]:
            _warn(f"unclosed {type(self).__name__}", ResourceWarning, source=self)

    def __repr__(self) -> str:
        return f"<inlaid.{type(self).__name__}{' (closed)' if self.closed else ''}>"

    def __reduce__(self):
        raise TypeError(f"a {type(self).__name__} cannot be pickled")


def capsule_of(handle):
    """The capsule of a handle, or None for None."""
    return None if handle is None else handle._c
