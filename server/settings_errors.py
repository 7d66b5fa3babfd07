"""Sentences about wrong settings: the key, what is expected and what there is in its place."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

# pydantic's kinds of problems, and what to say where its text is about Python's types.
_TEXTS = {
    "tuple_type": "Input should be a list",
    "model_type": "Input should be a map of keys",
    "dict_type": "Input should be a map",
    "mapping_type": "Input should be a map",
}
_NEAR = 0.6  # of difflib's ratio; a key has few letters


class WrongKeyError(ValueError):
    """The value of `key` does not fit the values of other keys; `text` says what it must be.

    `key` is within what is checked, and is the whole key where that is all settings.
    """

    def __init__(self, key: str, text: str) -> None:
        super().__init__(f"{key}: {text}")
        self.key, self.text = key, text


def describe_errors(
    error: ValidationError, settings: type[BaseModel], source_of: Callable[[str], str]
) -> str:
    """Return a line for each wrong key; `source_of` gets the key, "" if all keys together are."""
    lines = []
    for key, text, got in _problems(error, settings):
        lines.append(f"{key or 'settings'}: {text}{got} ({source_of(key)})")
    return "Wrong settings:\n  " + "\n  ".join(lines)


def describe_without_values(error: ValidationError, file: type[BaseModel]) -> str:
    """Return one line about the wrong entries of a file, whose values may be secret."""
    return "; ".join(f"{key or 'the file'}: {text}" for key, text, _ in _problems(error, file))


def _problems(error: ValidationError, settings: type[BaseModel]) -> Iterator[tuple[str, str, str]]:
    """Yield each wrong key ("" if it is none alone), what is expected, and what there is.

    The last is empty if the text says it, or there is nothing.
    """
    for problem in error.errors():
        # A choice between types is a part of the place, in words about Python.
        parts = [part for part in problem["loc"] if not str(part).startswith("function-")]
        text = _TEXTS.get(problem["type"], problem["msg"])
        if problem["type"] == "extra_forbidden":
            text = _unknown_key(settings, parts)
        value = problem["input"]
        got = "" if problem["type"] == "missing" else f", got {_shown(value):.80}"
        raised = problem.get("ctx", {}).get("error")
        if isinstance(raised, ValueError):
            text = str(raised)  # to which pydantic adds words
            got = "" if isinstance(value, Mapping | BaseModel) else got
        if isinstance(raised, WrongKeyError):
            parts, text = [*parts, raised.key], raised.text
        yield ".".join(map(str, parts)), text, got


def _shown(value: object) -> str:
    """Return a value as text; of a section, whose values may be secret, the keys alone."""
    if isinstance(value, Mapping | BaseModel) and dict(value):
        return f"a map of {', '.join(map(str, dict(value)))}"
    if isinstance(value, list | tuple) and any(
        isinstance(each, Mapping | BaseModel | list | tuple) for each in value
    ):
        return f"a list of {len(value)}"
    return repr(value)


def _unknown_key(settings: type[BaseModel], parts: Sequence[int | str]) -> str:
    """Return a text that names the nearest key, or else those there are."""
    section = _section(settings, parts[:-1])
    if section is None:
        return "There is no such key"
    import difflib  # which a server without a mistake does not need

    keys = list(section.model_fields)
    near = difflib.get_close_matches(str(parts[-1]), keys, 1, _NEAR)
    if near:
        return f"There is no such key (did you mean {near[0]}?)"
    return f"There is no such key; there are {', '.join(keys)}"


def _section(kind: Any, parts: Sequence[int | str]) -> type[BaseModel] | None:
    """Return the section that a value of type `kind` has at a place, or None if it has none."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _section(arguments[0], parts)
    if origin in (Union, types.UnionType):
        found = (_section(each, parts) for each in arguments)
        return next((each for each in found if each is not None), None)
    if isinstance(origin, type) and issubclass(origin, tuple | Mapping):
        values = arguments[1] if issubclass(origin, Mapping) else arguments[0]
        return _section(values, parts[1:]) if parts else None
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return None
    if not parts:
        return kind
    field = kind.model_fields.get(str(parts[0]))
    return None if field is None else _section(field.annotation, parts[1:])
