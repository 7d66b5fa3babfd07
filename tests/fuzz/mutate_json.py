"""Mutations of JSON documents: of their values, and of their text.

Pure: the same random numbers give the same mutations.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

from tests.fuzz.mutate_bytes import mutated_bytes

_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 1.5, -0.0, 1e308, 1 << 31, 1 << 63, -(1 << 63), 10**40),
    *("", "x", "x:0", "y", "NaN", "Infinity", "\0", "\ud800", "é" * 100, "AAAA", "AA=", "float32"),
    *([], [[]], [[], [1]], [1, 2], [1, "x"], [[1], [2, 3]], [None], [1.5, 2], [True]),
    *({}, {"b64": "AAAA"}, {"b64": "*"}, {"b64": 1}, {"x": {}}, {"shape": [1 << 40]}),
    *(float("nan"), float("inf"), float("-inf")),
)  # fmt: skip
_TOKENS = (
    *(b"NaN", b"Infinity", b"-Infinity", b"nan", b"1e999", b"-0", b"01", b"1.", b".5", b"+1"),
    *(b"1E400", b"1e-400", b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\u0000"),
    *(b"\\ud800", b"\xff", b"\xef\xbb\xbf", b"null", b"true", b"//", b"/*", b"'", b"\t", b"\x00"),
    *(b'{"b64":"AAAA"}', b"[" * 16, b"[" * 2000, b'{"a":' * 2000, b"1" * 400, b"1" * 5000),
    *(b"9223372036854775808", b"]" * 2000),
)  # fmt: skip
_NESTED = (1, 2, 10, 100)  # the text may nest deeper
_AS_TEXT = 0.35  # of the inputs have their text changed too


def mutated_json(document: Any, random_state: random.Random, keys: tuple[str, ...] = ()) -> bytes:
    """Return the text of a document after some changes; `keys` may be added to its objects."""
    changed = copy.deepcopy(document)
    for _ in range(random_state.choice((0, 1, 1, 1, 2, 3))):
        changed = _changed(changed, random_state, keys)
    separators = random_state.choice(((",", ":"), (", ", ": "), (" , ", "\n:\t")))
    is_ascii = random_state.random() < 0.7
    text = json.dumps(changed, separators=separators, ensure_ascii=is_ascii)
    content = text.encode(errors="surrogatepass")
    if random_state.random() < _AS_TEXT:
        content = mutated_bytes(content, random_state, _TOKENS)
    return content


def smaller_json(data: bytes) -> Iterator[bytes]:
    """Yield documents without one of their parts, if the text is a document."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    for path in _paths(document, ()):
        copied = copy.deepcopy(document)
        if path:
            parent = copied
            for key in path[:-1]:
                parent = parent[key]
            del parent[path[-1]]
            yield json.dumps(copied).encode()


def _changed(document: Any, random_state: random.Random, keys: tuple[str, ...]) -> Any:
    path = random_state.choice(list(_paths(document, ())))
    if not path:
        return _other(document, random_state)
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    last, kind = path[-1], random_state.randrange(8)
    if kind == 0:
        del parent[last]
    elif kind == 1 and isinstance(parent, dict):
        names = (*keys, *_strings(document), "", "unknown")
        parent[random_state.choice(names)] = parent.pop(last)
    elif kind == 2 and isinstance(parent, list):
        parent[last:last] = [parent[last]] * random_state.choice((1, 2, 50))
    elif kind == 3 and isinstance(parent, dict) and keys:
        parent[random_state.choice(keys)] = _other(parent[last], random_state)
    elif kind == 4:
        for _ in range(random_state.choice(_NESTED)):
            parent[last] = [parent[last]]
    else:
        parent[last] = _other(parent[last], random_state)
    return document


def _other(value: Any, random_state: random.Random) -> Any:
    if isinstance(value, bool) or random_state.random() < 0.6:
        return copy.deepcopy(random_state.choice(_VALUES))
    if isinstance(value, int):
        return random_state.choice((value + 1, value - 1, -value, value * 1000, float(value)))
    if isinstance(value, str):
        return mutated_bytes(value.encode(errors="ignore"), random_state).decode(errors="replace")
    return [value, copy.deepcopy(value)]


def _paths(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _paths(each, (*path, key))
    elif isinstance(value, list):
        for at, each in enumerate(value[:20]):
            yield from _paths(each, (*path, at))


def _strings(value: Any) -> list[str]:
    return [key for path in _paths(value, ()) for key in path if isinstance(key, str)]
