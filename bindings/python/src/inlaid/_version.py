"""The loaded library must fit the header that this binding was built from."""

from __future__ import annotations

from . import _inlaid


def _text(abi: int) -> str:
    return f"{abi >> 16}.{abi & 0xffff}"


def check(built: int = _inlaid.INLAID_ABI_VERSION, loaded: int | None = None) -> None:
    """ImportError unless the majors are equal and the loaded minor is at least the one built for."""
    if loaded is None:
        loaded = _inlaid.inlaid_abi_version()
    if built >> 16 != loaded >> 16 or loaded & 0xffff < built & 0xffff:
        raise ImportError(f"this Python package was built for version {_text(built)} of the C API of Inlaid, but the library "
                          f"loaded from {_inlaid.library_path()} has version {_text(loaded)}")


def version() -> str:
    """Version of the loaded library, with build identification."""
    return _inlaid.inlaid_version_string()


def has_feature(name: str) -> bool:
    """Whether this installation offers a feature: "lora", "gguf", "avx512", ..."""
    return bool(_inlaid.inlaid_has_feature(name))
