"""Large bodies give the arrays and the errors of small ones, in both APIs."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from runtime.api import DataType
from runtime.errors import InvalidArgumentError, OpError
from server.codec import json_body
from server.codec.large import large_body, large_values, list_levels, sliced_body, structure
from server.codec.serving import requests
from server.codec.session.json_steps import read_feeds

TYPES = [DataType.FLOAT, DataType.INT32, DataType.BOOL, DataType.STRING, DataType.COMPLEX64]
LEAVES: dict[DataType, list[Any]] = {
    DataType.FLOAT: [1, 2.5, -3e10],
    DataType.INT32: [1, -5],
    DataType.BOOL: [True, False],
    DataType.STRING: ["", "abc", 'q"\\', {"b64": "QUJD"}, "é" * 30],
    DataType.COMPLEX64: [0.5, 1],
}


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structure, "SCANNED_BYTES", 50)
    monkeypatch.setattr(structure, "MIN_STRING", 40)
    monkeypatch.setattr(list_levels, "CUT_BYTES", 32)
    monkeypatch.setattr(large_body, "MIN_LIST_BYTES", 30)
    monkeypatch.setattr(large_values, "TEXT_BYTES", 48)
    monkeypatch.setattr(requests, "LARGE_BODY_BYTES", 1)


def nested(rng: random.Random, shape: list[int], leaves: list[Any]) -> Any:
    if not shape:
        return rng.choice(leaves)
    return [nested(rng, shape[1:], leaves) for _ in range(shape[0])]


def spoiled(rng: random.Random, value: Any, wrong: Any) -> Any:
    """The value with something wrong in one place."""
    if not isinstance(value, list) or not value or rng.random() < 0.1:
        return wrong
    if rng.random() < 0.2:
        return value[:-1]
    place = rng.randrange(len(value))
    return [*value[:place], spoiled(rng, value[place], wrong), *value[place + 1 :]]


def tensor(rng: random.Random, data_type: DataType) -> Any:
    shape = [rng.choice([1, 2, 3, 7]) for _ in range(rng.choice([1, 2, 3]))]
    if data_type is DataType.COMPLEX64:
        shape.append(2)
    value = nested(rng, shape, LEAVES[data_type])
    if rng.random() < 0.5:
        value = spoiled(rng, value, rng.choice([True, "no", 1.5, 7, None, [], [1], 1 << 40]))
    return value


def outcome(read: Any) -> Any:
    try:
        return {name: (array.shape, array.tolist()) for name, array in read().items()}
    except OpError as error:
        return type(error), error.message


@pytest.mark.parametrize("seed", range(10))
def test_feeds_of_a_session(seed: int, small_limits: None) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        data_type = rng.choice(TYPES)
        value = tensor(rng, data_type)
        typed = {"dtype": data_type.name_on_wire, "data": value}
        value = rng.choice([value, typed])
        body = json.dumps({"feeds": {"x": value}}).encode()
        known = frozenset({"feeds"})
        info = lambda _: (data_type, None)  # noqa: B023, E731 - called at once
        large = outcome(
            lambda: read_feeds(json_body.parse_large_object(body, known, "feeds")["feeds"], info)  # noqa: B023
        )
        small = outcome(lambda: read_feeds(json_body.parse_object(body, known)["feeds"], info))  # noqa: B023
        assert large == small, body


class Inputs:
    def __init__(self, types: dict[str, DataType]) -> None:
        self.input_types = types


def predict(body: bytes, types: dict[str, DataType]) -> dict[str, np.ndarray]:
    document = requests.parse_document(body)
    return requests.predict_inputs(document, "serving_default", False, Inputs(types))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("form", ["rows", "objects", "columns", "one column"])
def test_inputs_of_a_prediction(seed: int, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(f"{form} {seed}")
    cases = []
    for _ in range(40):
        data_type = rng.choice(TYPES[:4])
        types = {"x": data_type}
        value = tensor(rng, data_type)
        document: dict[str, Any] = {"instances": value}
        if form == "one column":
            document = {"inputs": value}
        elif form == "columns":
            types["y"] = DataType.STRING
            document = {"inputs": {"x": value, "y": tensor(rng, DataType.STRING)}}
        elif form == "objects" and isinstance(value, list):
            types["y"] = DataType.INT32
            document = {"instances": [{"x": each, "y": rng.choice([1, [2], 3])} for each in value]}
        cases.append((json.dumps(document).encode(), types))
    small = [outcome(lambda case=case: predict(*case)) for case in cases]
    for module, name, limit in (
        (structure, "SCANNED_BYTES", 50),
        (structure, "MIN_STRING", 40),
        (list_levels, "CUT_BYTES", 32),
        (large_body, "MIN_LIST_BYTES", 30),
        (large_values, "TEXT_BYTES", 48),
        (requests, "LARGE_BODY_BYTES", 1),
        (sliced_body, "MIN_ARRAY_BYTES", 1 << 30),
    ):
        monkeypatch.setattr(module, name, limit)
    for case, expected in zip(cases, small, strict=True):
        got = outcome(lambda case=case: predict(*case))
        assert same(got, expected), (case, got, expected)


def same(got: Any, expected: Any) -> bool:
    return bool(got == expected)


def _error_of(body: bytes, data_type: DataType) -> str:
    with pytest.raises(InvalidArgumentError) as caught:
        predict(body, {"x": data_type})
    return caught.value.message


@pytest.mark.parametrize("data_type", [DataType.FLOAT, DataType.STRING])
@pytest.mark.parametrize("key", ["instances", "inputs"])
@pytest.mark.parametrize("depth", [64, 65, 66, 200, 1100])
@pytest.mark.parametrize("before", [0, 1, 50])
def test_lists_deeper_than_a_tensor_have_the_error_of_small_bodies(
    depth: int, key: str, data_type: DataType, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = "1" if data_type is DataType.FLOAT else '"1"'
    deep = "[" * depth + value + "]" * depth
    shallow = f"[{value}]" if key == "instances" and depth > 64 else deep
    body = f'{{"{key}": [{",".join([shallow] * before + [deep] * 3)}]}}'.encode()
    monkeypatch.setattr(requests, "LARGE_BODY_BYTES", len(body) + 1)
    small = _error_of(body, data_type)
    assert "A tensor may have 64 dimensions at most, got" in small
    monkeypatch.setattr(requests, "LARGE_BODY_BYTES", 1)
    monkeypatch.setattr(large_body, "MIN_LIST_BYTES", 30)
    monkeypatch.setattr(list_levels, "CUT_BYTES", 32)
    assert _error_of(body, data_type) == small


def test_faults_before_lists_that_are_too_deep_are_reported_first(small_limits: None) -> None:
    deep = "[" * 100 + "]" * 100
    body = f'{{"instances": [[1], [2], [null], [3], {deep}]}}'.encode()
    assert "element: 2 of 'instances' list" in _error_of(body, DataType.FLOAT)


@pytest.mark.parametrize(("depth", "fault"), [(66, "nested over 64 deep"), (64, "lengths [1, 2]")])
def test_feeds_that_are_too_deep_or_ragged(depth: int, fault: str, small_limits: None) -> None:
    deep = "[" * depth + "1" + "]" * depth
    ragged = "[" * (depth - 1) + "1,2" + "]" * (depth - 1)
    body = f'{{"feeds": {{"x": [{deep}, {ragged if depth == 64 else deep}]}}}}'.encode()
    feeds = json_body.parse_large_json(body, ("feeds",))["feeds"]
    with pytest.raises(InvalidArgumentError) as caught:
        read_feeds(feeds, lambda _: (DataType.FLOAT, None))
    assert fault in caught.value.message
