"""Parse the JSON bodies of clients, with bare NaN and Infinity too, and write compact JSON."""

from __future__ import annotations

import gc
import json
import threading
from typing import Any

import orjson

from runtime.errors import InvalidArgumentError
from server.codec.large.large_body import LargeBody, parse_session_part
from server.codec.large.large_values import LargeList, LargeText
from server.codec.large.number_slices import PYTHON_WORDS
from server.codec.large.sliced_body import UnusualJson, read_sliced

# The size from which bodies are parsed on another thread, `step_runner.OFF_LOOP_BYTES`. That is not
# imported: `runstep run` reads JSON too, and the step runner takes 0.15 s to import.
LARGE_BODY_BYTES = 1 << 18


_UNUSUAL = UnusualJson(json.loads, PYTHON_WORDS)


class _CollectorPause:
    """A context in which the garbage collector does not run; several threads may be in it.

    The last thread that leaves enables the collector, unless it was disabled before the first one
    entered.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the two fields below and the collector's switch
        self._inside = 0
        self._was_enabled = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._was_enabled:
                gc.enable()


_no_collection = _CollectorPause()


def load_json(body: bytes) -> Any:
    """Parse a JSON text with orjson; raises orjson.JSONDecodeError.

    The garbage collector does not run while a large body is parsed: it would visit the new lists
    and objects many times, and none of them can be garbage yet.
    """
    if len(body) < LARGE_BODY_BYTES:
        return orjson.loads(body)
    with _no_collection:
        return orjson.loads(body)


def parse_json(body: bytes) -> Any:
    """Parse a JSON text and return its value; return an empty object if `body` is empty.

    `NaN`, `Infinity` and `-Infinity` are read as numbers, as in TensorFlow Serving. Raises
    InvalidArgumentError with the position of the fault if `body` is not valid JSON.
    """
    if not body.strip():
        return {}
    try:
        return load_json(body)
    except orjson.JSONDecodeError as error:
        if b"NaN" not in body and b"Infinity" not in body:
            raise InvalidArgumentError(f"The body is not valid JSON: {error}") from None
    try:
        return json.loads(body)  # slower than orjson, but accepts NaN and Infinity without quotes
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"The body is not valid JSON: {error}") from None


def parse_object(body: bytes, known: frozenset[str]) -> dict[str, Any]:
    """Parse a body that must be a JSON object with no other keys than those in `known`.

    Raises InvalidArgumentError if `body` is not such an object.
    """
    return _checked_object(parse_json(body), known)


def parse_sliced_object(body: bytes, known: frozenset[str], key: str) -> dict[str, Any] | None:
    """Parse a large body as `parse_object` does, with NumberArrays for large arrays in `key`.

    Returns None if the body has to be read with `parse_object`: it has no such
    array, or something else in it is large or may be faulty. Raises InvalidArgumentError for an
    unknown key.
    """
    sliced = read_sliced(body, (key,), _UNUSUAL)
    return None if sliced is None else _checked_object(sliced, known)


def parse_sliced_value(body: bytes, key: str) -> dict[str, Any] | None:
    """Parse a large object with NumberArrays for large arrays in `key`, whatever its keys are.

    Returns None if it has to be read with `parse_json`.
    """
    return read_sliced(body, (key,), _UNUSUAL)


def parse_large_object(body: bytes, known: frozenset[str], key: str) -> dict[str, Any]:
    """Parse a large body as `parse_object` does, with LargeLists and LargeTexts below `key`.

    Raises InvalidArgumentError also if anything else in the body is large.
    """
    return _checked_object(LargeBody(body, parse_session_part).members((key,)), known)


def _checked_object(value: Any, known: frozenset[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidArgumentError(
            f"The body must be a JSON object, got {type_name(value)}; known keys are "
            f"{', '.join(sorted(known))}"
        )
    if not value.keys() <= known:
        unknown = ", ".join(sorted(value.keys() - known))
        raise InvalidArgumentError(
            f"Unknown keys: {unknown}; known keys are {', '.join(sorted(known))}"
        )
    return value


_TYPE_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number with a fraction",
    type(None): "null",
    LargeList: "a list",
    LargeText: "a string",
}


def type_name(value: object) -> str:
    """Return what error messages call the JSON kind of a parsed value, for example "a list"."""
    return _TYPE_NAMES.get(type(value), type(value).__name__)


def to_json(value: Any) -> bytes:
    """Write a value as compact JSON; numpy arrays become nested lists.

    The arrays must be C-contiguous. NaN and infinities in them are written as null.
    """
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
