"""Bodies of /v2 with binary tensors after the JSON, on the short way and the usual one.

The short way and the usual one must give the same answer.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.fuzz.children import enter
from tests.fuzz.mutate_bytes import join_frames, mutated_bytes, smaller_bytes, split_frames
from tests.fuzz.mutate_json import mutated_json, smaller_json
from tests.fuzz.served import Answer, Served, wrong
from tests.fuzz.target import Target

_MODELS = ("half_plus_two", "string_lookup", "mlp_small")
_HEADER = b"inference-header-content-length"
_USUAL_WAY = (b"x-timeout-ms", b"30000")  # changes nothing, but plain requests don't have it
_WARM_RUNS = 20  # until a step is known to be short


def _input(name: str, shape: list[int], datatype: str, content: bytes) -> dict[str, Any]:
    parameters = {"binary_data_size": len(content)}
    return {"name": name, "shape": shape, "datatype": datatype, "parameters": parameters}


_FLOATS = np.float32([1, 2, 5]).tobytes()
_ROWS = np.float32([[0.5] * 4, [1] * 4]).tobytes()
_WORDS = b"\x01\x00\x00\x00a\x02\x00\x00\x00bc"
_BINARY = {"binary_data_output": True}
_SEEDS: tuple[tuple[str, dict[str, Any], bytes], ...] = (
    ("half_plus_two", {"inputs": [_input("x", [3], "FP32", _FLOATS)]}, _FLOATS),
    (
        "half_plus_two",
        {"id": "a", "inputs": [_input("x", [3], "FP32", _FLOATS)], "parameters": _BINARY},
        _FLOATS,
    ),
    (
        "half_plus_two",
        {
            "inputs": [{"name": "x", "shape": [2], "datatype": "FP32", "data": [1.0, 2.0]}],
            "outputs": [{"name": "y", "parameters": {"binary_data": True}}],
        },
        b"",
    ),
    ("string_lookup", {"inputs": [_input("keras_tensor", [2, 1], "BYTES", _WORDS)]}, _WORDS),
    (
        "string_lookup",
        {"inputs": [_input("keras_tensor", [2, 1], "BYTES", _WORDS)], "parameters": _BINARY},
        _WORDS,
    ),
    ("mlp_small", {"inputs": [_input("keras_tensor", [2, 4], "FP32", _ROWS)]}, _ROWS),
)
_KEYS = ("inputs", "outputs", "parameters", "name", "shape", "datatype", "data", "binary_data",
         "binary_data_size", "binary_data_output", "classification", "id", "x", "y")  # fmt: skip
_LENGTHS = (b"", b"0", b"-1", b"x", b"1", b"99999999999999999999", b"1.0", b"+3", b"00")


class BinaryInference(Target):
    """Mutated headers in JSON, tensors and lengths."""

    name = "binary_inference"
    inputs_a_child = 2000

    def start(self) -> None:
        self._served = Served(_MODELS)
        for model, document, content in _SEEDS:
            head = json.dumps(document).encode()
            for _ in range(_WARM_RUNS):
                self._both(model.encode(), b"%d" % len(head), head + content)

    def make(self, random_state: random.Random) -> bytes:
        model, document, content = random_state.choice(_SEEDS)
        head = json.dumps(document).encode()
        if random_state.random() < 0.6:
            head = mutated_json(document, random_state, _KEYS)
        if random_state.random() < 0.4:
            content = mutated_bytes(content, random_state)
        length = b"%d" % len(head)
        if random_state.random() < 0.1:
            length = random_state.choice((*_LENGTHS, b"%d" % random_state.randrange(200)))
        return join_frames([model.encode(), length, head, content])

    def run(self, data: bytes) -> str:
        model, length, head, content = split_frames(data)
        now, usual = self._both(model, length, head + content)
        found = wrong(usual) if usual.status >= 400 else ""
        if usual.status >= 500 and usual.status != 504:
            found = f"STATUS {usual.status} {usual.body[:300]!r}"
        if usual.status == 504:
            enter("after the deadline")
            self._served.until_idle()
        elif now is not None and _content(now) != _content(usual):
            one, other = _content(now), _content(usual)
            found = f"DIFFERS {one!r:.200} is at once, {other!r:.200} the usual"
        return found or str(usual.status)

    def smaller(self, data: bytes) -> Iterator[bytes]:
        model, length, head, content = split_frames(data)
        is_right = length == b"%d" % len(head)
        for each in (*smaller_json(head), *smaller_bytes(head)):
            yield join_frames([model, b"%d" % len(each) if is_right else length, each, content])
        for each in smaller_bytes(content):
            yield join_frames([model, length, head, each])

    def _both(self, model: bytes, length: bytes, body: bytes) -> tuple[Answer | None, Answer]:
        """Return the answer at once, if there is one, and the usual one."""
        path = f"/v2/models/{model.decode()}/infer"
        header = (_HEADER, length)
        now = self._served.answer_now(path, body, [header])
        return now, self._served.request("POST", path, [header, _USUAL_WAY], body)


def _content(answer: Answer) -> object:
    """Return the status and the body of an answer, an error without the request's id."""
    if answer.status < 400:
        return answer.status, answer.body
    document = json.loads(answer.body)
    document.pop("request_id", None)
    return answer.status, document
