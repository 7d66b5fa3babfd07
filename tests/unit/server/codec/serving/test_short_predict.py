"""Short predict bodies and answers are as `requests` and `answers` have them, or left to those."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.framework.dtypes import DataType
from server.codec.serving.answers import write_predict_response
from server.codec.serving.requests import parse_document, predict_inputs, signature_name
from server.codec.serving.short_predict import (
    PredictFormat,
    read_short,
    short_inputs,
    write_short,
)

F32 = {"x": DataType.FLOAT}
TWO = {"a": DataType.INT32, "b": DataType.DOUBLE}
ROW, COLUMNAR = PredictFormat.ROW, PredictFormat.COLUMNAR
Inputs = dict[str, DataType]


def read(body: bytes, inputs: Inputs) -> list[np.ndarray] | None:
    request = read_short(body)
    if request is None:
        return None
    _, form, value = request
    return short_inputs(form, value, inputs)


def check_agrees(body: bytes, inputs: Inputs) -> bool:
    """Whether the body was read; if it was, the usual way reads the same."""
    request = read_short(body)
    if request is None:
        return False
    signature, form, value = request
    arrays = short_inputs(form, value, inputs)
    if arrays is None:
        return False
    document = parse_document(body)
    assert signature == signature_name(document)
    assert form is document.predict_format
    expected = predict_inputs(document, signature, False, SimpleNamespace(input_types=inputs))
    assert expected.keys() == inputs.keys()
    for name, array in zip(inputs, arrays, strict=True):
        assert array.dtype == expected[name].dtype == inputs[name].numpy
        assert array.shape == expected[name].shape
        assert array.tobytes() == expected[name].tobytes()
    return True


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        (b'{"instances":[1.0,2,-0.0]}', F32),
        (b'{"instances":[[1.5],[1e300]]}', F32),
        (b'{"signature_name":"other","instances":[3]}', F32),
        (b'{"instances":[{"x":1},{"x":2}]}', F32),
        (b'{"instances":[{"b":1.5,"a":1}]}', TWO),
        (b'{"inputs":7}', F32),
        (b'{"inputs":[[1,2],[3,4]]}', F32),
        (b'{"inputs":{"b":[0.1],"a":[[1]]}}', TWO),
        (b'{"instances":[true,false]}', {"x": DataType.BOOL}),
        (b'{"instances":[-128]}', {"x": DataType.INT8}),
        (b'{"instances":[18446744073709551615]}', {"x": DataType.UINT64}),
    ],
)
def test_regular_bodies_of_numbers_are_read(body: bytes, inputs: Inputs) -> None:
    assert check_agrees(body, inputs)


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        (b"", F32),
        (b"[]", F32),
        (b"{", F32),
        (b"{}", F32),
        (b'{"instances":[NaN]}', F32),
        (b'{"instances":[1]} rest', F32),
        (b'{"instances":[]}', F32),
        (b'{"instances":null}', F32),
        (b'{"instances":1}', F32),
        (b'{"instances":[1],"inputs":[1]}', F32),
        (b'{"instances":[1],"priority":"low"}', F32),
        (b'{"instances":[1],"other":1}', F32),
        (b'{"signature_name":3,"instances":[1]}', F32),
        (b'{"signature_name":"","instances":[1]}', F32),
        (b'{"instances":["1"]}', F32),
        (b'{"instances":[true]}', F32),
        (b'{"instances":[[1],[1,2]]}', F32),
        (b'{"instances":[{"x":1},2]}', F32),
        (b'{"instances":[{"x":1},{"x":[2]}]}', F32),
        (b'{"instances":[{"x":1,"y":2}]}', F32),
        (b'{"instances":[1.0]}', {"x": DataType.INT32}),
        (b'{"instances":[128]}', {"x": DataType.INT8}),
        (b'{"instances":["a"]}', {"x": DataType.STRING}),
        (b'{"instances":[{"b64":"aGVsbG8="}]}', {"b64": DataType.STRING}),
        (b'{"instances":[1]}', {"x": DataType.HALF}),
        (b'{"instances":[1]}', TWO),
        (b'{"instances":[1]}', {}),
        (b'{"inputs":[1]}', TWO),
        (b'{"inputs":{"x":1,"more":2}}', F32),
        (b'{"inputs":{"a":1}}', TWO),
    ],
)
def test_other_bodies_are_left_to_the_usual_way(body: bytes, inputs: Inputs) -> None:
    assert not read(body, inputs)


NUMBER = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
LEAF = NUMBER | st.booleans() | st.none() | st.text(max_size=3)
VALUE = st.lists(NUMBER, max_size=4) | st.recursive(
    LEAF,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abx"), inner),
    max_leaves=8,
)
TYPES = [DataType.FLOAT, DataType.DOUBLE, DataType.INT32, DataType.UINT8, DataType.INT64]


@given(
    st.sampled_from(["instances", "inputs"]),
    VALUE,
    st.sampled_from([F32, TWO, *({"x": each} for each in TYPES)]),
)
def test_what_is_read_means_the_same_in_the_usual_way(key: str, value: Any, inputs: Inputs) -> None:
    body = json.dumps({key: value}).encode()
    check_agrees(body, inputs)


@pytest.mark.parametrize("form", [ROW, COLUMNAR])
@pytest.mark.parametrize(
    "array",
    [
        np.array([1.5, -0.0, 1e30], np.float32),
        np.array([[0.1], [2]], np.float64),
        np.array([1, -1], np.int64),
        np.array([True, False]),
        np.zeros((0,), np.float32),
        np.zeros((2, 0), np.uint8),
    ],
    ids=str,
)
def test_an_array_of_numbers_is_written_as_by_the_usual_way(
    array: np.ndarray, form: PredictFormat
) -> None:
    assert write_short(form, [array]) == write_predict_response({"y": array}, form)


@pytest.mark.parametrize(
    "values",
    [
        [],
        [np.zeros(1), np.zeros(1)],
        [np.float32(1)],
        [np.zeros((), np.float32)],
        [np.array([np.nan], np.float32)],
        [np.array([np.inf])],
        [np.array([b"a"], object)],
        [np.zeros(1, np.float16)],
        [np.zeros(1, np.uint16)],
        [np.zeros(1, np.complex64)],
        [np.zeros(1, ">f4")],
        [np.zeros((2, 2), np.float32).T],
    ],
    ids=str,
)
def test_other_outputs_are_left_to_the_usual_way(values: list[Any]) -> None:
    assert write_short(ROW, values) is None
