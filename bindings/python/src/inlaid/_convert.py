"""Between Python values and what the C API takes: JSON text, paths, arrays of int32."""

from __future__ import annotations

import json
import os
from array import array
from typing import Any, Mapping, Union

from ._errors import InvalidArgument

Json = Union[str, Mapping[str, Any]]
PathLike = Union[str, "os.PathLike[str]"]


def _plain(value):
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise InvalidArgument(f"a {type(value).__name__} has no JSON form: {value!r}")


def to_json(value: Any) -> str:
    """Text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    except (TypeError, ValueError, RecursionError) as e:
        if isinstance(e, InvalidArgument):
            raise
        raise InvalidArgument(f"no JSON form: {e}") from e


def options_json(options: Json | None, more: Mapping[str, Any]) -> str | None:
    """Options given as a dict or JSON text, and further ones by keyword; None if there are none at all."""
    if not more:
        return None if options is None else to_json(options)
    if isinstance(options, str):
        try:
            options = json.loads(options)
        except ValueError as e:
            raise InvalidArgument(f"options: {e}") from e
    return to_json({**(options or {}), **more})


def path_text(path: PathLike) -> str:
    path = os.fspath(path)
    return os.fsdecode(path) if isinstance(path, bytes) else path


def milliseconds(timeout: float | None) -> int:
    """Seconds to the C API's milliseconds; None waits for ever."""
    return -1 if timeout is None else max(0, int(timeout * 1000))


def int32_buffer(values: Any, what: str = "values"):
    """A contiguous buffer of int32 with the integers of values: the object's own memory if that fits, else a copy."""
    if isinstance(values, array) and values.typecode == "i":
        return values
    try:
        view = memoryview(values)
    except TypeError:
        pass
    else:
        if view.format not in ("i", "l", "q"):
            raise InvalidArgument(f"{what} must hold int32 or int64, not values of format {view.format!r}")
        if view.ndim != 1:
            raise InvalidArgument(f"{what} has {view.ndim} dimensions, must have 1")
        if view.itemsize == 4 and view.c_contiguous:
            return view
        values = view.tolist()
    try:
        return array("i", values)
    except (OverflowError, TypeError) as e:
        raise InvalidArgument(f"{what}: {e}") from e


def int32_list(data: bytes) -> list:
    return memoryview(data).cast("i").tolist()
