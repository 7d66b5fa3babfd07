"""Predict requests of TensorFlow Serving as data; the ids are the conformance list's."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.foundation.errors import InvalidArgumentError, OpError, UnimplementedError
from runtime.framework.dtypes import DataType
from server.codec.serving.requests import (
    PredictFormat,
    parse_document,
    predict_inputs,
    signature_name,
)

F32 = {"x": DataType.FLOAT}
F64 = {"x": DataType.DOUBLE}
I32 = {"d": DataType.INT32}
STR = {"s": DataType.STRING}
MIXED = {
    "int_tensor": DataType.INT32,
    "str_tensor": DataType.STRING,
    "bin_tensor": DataType.STRING,
}


DEEP = "[" * 500_000 + "]" * 500_000


def read(
    body: str | bytes, inputs: dict[str, DataType], strict: bool = False
) -> dict[str, np.ndarray]:
    document = parse_document(body.encode() if isinstance(body, str) else body)
    signature = SimpleNamespace(input_types=inputs)
    return predict_inputs(document, signature_name(document), strict, signature)


ACCEPTED: list[tuple[str, str, dict[str, DataType], dict[str, tuple[list[int], list[Any]]]]] = [
    ("31", '{"instances":[[1,2],[3,4],[5,6]]}', I32, {"d": ([3, 2], [1, 2, 3, 4, 5, 6])}),
    ("32-deep", f'{{"instances":[1],"nested":{DEEP}}}', I32, {"d": ([1], [1])}),
    (
        "34",
        '{"instances":[1,2.0,3,4,5.003,0.007,0.0]}',
        F32,
        {"x": ([7], [1, 2, 3, 4, 5.003, 0.007, 0])},
    ),
    (
        "34-double",
        '{"instances":[1,2.0,3,4,5.003,0.007,0.0]}',
        F64,
        {"x": ([7], [1, 2, 3, 4, 5.003, 0.007, 0])},
    ),
    ("35-int", '{"instances":[1435774380]}', F32, {"x": ([1], [1435774336.0])}),
    ("35-float", '{"instances":[1435774380.0]}', F32, {"x": ([1], [1435774336.0])}),
    ("36", '{"instances":[1.797e308,-1.797e308]}', F32, {"x": ([2], [math.inf, -math.inf])}),
    ("37", '{"instances":[2.2e-308,-2.2e-308]}', F32, {"x": ([2], [0.0, -0.0])}),
    ("38-trailing", '{"instances":[1]}garbage', I32, {"d": ([1], [1])}),
    (
        "39",
        '{"instances":[{"b64":"aGVsbG8="},{"b64":"d29ybGQ="}]}',
        STR,
        {"s": ([2], [b"hello", b"world"])},
    ),
    (
        "40",
        '{"instances":[[{"b64":"aGVsbG8="}],[{"b64":"d29ybGQ="}]]}',
        STR,
        {"s": ([2, 1], [b"hello", b"world"])},
    ),
    (
        "41",
        '{"instances":[{"s":[[{"b64":"aGVsbG8="}],[{"b64":"d29ybGQ="}]]}]}',
        STR,
        {"s": ([1, 2, 1], [b"hello", b"world"])},
    ),
    (
        "42",
        '{"instances":[{"x":[1.0,NaN],"y":1,"z":"a","w":true},'
        '{"x":[2.0,Infinity],"y":2,"z":"b","w":false}]}',
        {**F32, "y": DataType.INT64, "z": DataType.STRING, "w": DataType.BOOL},
        {
            "x": ([2, 2], [1.0, math.nan, 2.0, math.inf]),
            "y": ([2], [1, 2]),
            "z": ([2], [b"a", b"b"]),
            "w": ([2], [True, False]),
        },
    ),
    ("42-double", '{"inputs":[NaN]}', F64, {"x": ([1], [math.nan])}),
    (
        "43",
        '{"inputs":{"d":[[[1,2],[3,4],[5,6]]]}}',
        I32,
        {"d": ([1, 3, 2], [1, 2, 3, 4, 5, 6])},
    ),
    ("44", '{"inputs":[[[1,2],[3,4],[5,6]]]}', I32, {"d": ([1, 3, 2], [1, 2, 3, 4, 5, 6])}),
    (
        "45",
        '{"inputs":{"int_tensor":[[[1,2],[3,4],[5,6]]],"str_tensor":["foo","bar"],'
        '"bin_tensor":{"b64":"aGVsbG8="},"ignored":1}}',
        MIXED,
        {
            "int_tensor": ([1, 3, 2], [1, 2, 3, 4, 5, 6]),
            "str_tensor": ([2], [b"foo", b"bar"]),
            "bin_tensor": ([], [b"hello"]),
        },
    ),
    ("scalar", '{"inputs":3}', I32, {"d": ([], [3])}),
    ("empty-list", '{"inputs":[]}', F32, {"x": ([0], [])}),
    ("empty-rows", '{"instances":[[],[]]}', I32, {"d": ([2, 0], [])}),
    (
        "uint64",
        '{"inputs":[18446744073709551615]}',
        {"u": DataType.UINT64},
        {"u": ([1], [2**64 - 1])},
    ),
    ("bool", '{"inputs":[[true,false]]}', {"b": DataType.BOOL}, {"b": ([1, 2], [True, False])}),
    ("no-padding", '{"inputs":[{"b64":"aGVsbG8"}]}', STR, {"s": ([1], [b"hello"])}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "inputs", "expected"), [c[1:] for c in ACCEPTED], ids=[c[0] for c in ACCEPTED]
)
def test_tensors(body: str, inputs: dict[str, DataType], expected: dict[str, Any]) -> None:
    parsed = read(body, inputs)
    assert parsed.keys() == expected.keys()
    for name, (shape, values) in expected.items():
        array = parsed[name]
        assert list(array.shape) == shape
        assert array.dtype == inputs[name].numpy
        np.testing.assert_array_equal(array, np.array(values, array.dtype).reshape(shape))


def test_negative_zero_keeps_its_sign() -> None:
    assert np.signbit(read('{"instances":[-2.2e-308]}', F32)["x"][0])


def test_strings_that_are_not_utf8_keep_their_bytes() -> None:
    assert read(b'{"inputs":["a\xff"]}', STR)["s"].tolist() == [b"a\xff"]


ROW_ERROR = "Failed to process element: {} of 'instances' list. Error: INVALID_ARGUMENT: "
REFUSED: list[tuple[str, str, dict[str, DataType], str]] = [
    ("15", "", F32, "JSON Parse error: The document is empty"),
    ("16", "instances = [1, 2]", F32, "JSON Parse error: Invalid value. at offset: 0"),
    ("not-object", "[1, 2]", F32, "JSON Value: [1, 2] Is not object"),
    (
        "17",
        '{"instances":["x","y"]}',
        F32,
        ROW_ERROR.format(0) + 'JSON Value: "x" Type: String is not of expected type: float',
    ),
    (
        "19",
        '{"signature_name":100}',
        F32,
        'JSON Value: {\n    "signature_name": 100\n} not formatted correctly. '
        "'signature_name' key must be a string value.",
    ),
    ("33-deep", f'{{"signature_name":{DEEP}}}', F32, "key must be a string value."),
    (
        "46",
        '{"instances":[1],"inputs":[1]}',
        F32,
        'JSON Value: {\n    "instances": [1],\n    "inputs": [1]\n} Not formatted correctly '
        "expecting only one of 'inputs' or 'instances' keys to exist ",
    ),
    (
        "47",
        '{"instances":[[1,2],[3,4],[5,6,7]]}',
        I32,
        ROW_ERROR.format(2) + "Expecting tensor size: 2 but got: 3",
    ),
    (
        "48",
        '{"instances":[[1,2],[3,4],[[5,6]]]}',
        I32,
        ROW_ERROR.format(2) + "Expecting shape [2] but got: [1,2]",
    ),
    (
        "49",
        '{"instances":[1,[1]]}',
        I32,
        ROW_ERROR.format(1) + "Expecting shape [] but got: [1]",
    ),
    (
        "50",
        '{"instances":[[1,2],["a","b"]]}',
        I32,
        ROW_ERROR.format(1) + 'JSON Value: "a" Type: String is not of expected type: int32',
    ),
    (
        "51-shape",
        '{"instances":[{"d":[[1,2]]},{"d":[1,2]}]}',
        I32,
        ROW_ERROR.format("1 key: d") + "Expecting shape [1,2] but got: [2]",
    ),
    (
        "51-size",
        '{"instances":[{"d":[1,2]},{"d":[1]}]}',
        I32,
        ROW_ERROR.format("1 key: d") + "Expecting tensor size: 2 but got: 1",
    ),
    (
        "52",
        '{"instances":[{"d":[1]},[1,20,30]]}',
        I32,
        "Expecting object but got list at item 1 of input list",
    ),
    (
        "53",
        '{"instances":[["baz","bar"],{"s":["a","b"]}]}',
        STR,
        "Expecting value/list but got object at item 1 of input list",
    ),
    ("54-no-key", '{"other":1}', F32, "Missing 'inputs' or 'instances' key"),
    (
        "54-not-list",
        '{"instances":1}',
        F32,
        "Expecting 'instances' to be an list/array",
    ),
    ("54-empty", '{"instances":[]}', F32, "No values in 'instances' array"),
    (
        "54-plain-list",
        '{"instances":[1,2]}',
        MIXED,
        "instances is a plain list, but expecting list of objects as multiple input tensors "
        "required as per tensorinfo_map",
    ),
    (
        "54-keys",
        '{"instances":[{"a":1}]}',
        {"a": DataType.INT32, "b": DataType.INT32},
        "Failed to process element: 0 of 'instances' list. JSON object: {\n    \"a\": 1\n} "
        "keys must be equal to: a,b",
    ),
    (
        "54-unknown-key",
        '{"instances":[{"zz":1}]}',
        I32,
        ROW_ERROR.format("0 key: zz") + "JSON object: does not have named input: zz",
    ),
    (
        "54-missing",
        '{"inputs":{"b":1}}',
        {"a": DataType.INT32, "b": DataType.INT32},
        "Missing named input: a in 'inputs' object.",
    ),
    (
        "columnar-plain",
        '{"inputs":[1]}',
        {"a": DataType.INT32, "b": DataType.INT32},
        "inputs is a plain value/list, but expecting an object as multiple input tensors "
        "required as per tensorinfo_map",
    ),
    (
        "ragged",
        '{"inputs":[[1,2],[1,2,3]]}',
        I32,
        "Encountered list at unexpected size: 3 at level: 1 expected size: 2",
    ),
    ("too-deep", '{"inputs":[1,[1]]}', I32, "Encountered list at unexpected level: 1 expected < 1"),
    (
        "too-shallow",
        '{"inputs":[[1],2]}',
        I32,
        "JSON Value: 2 found at incorrect level: 2 in the JSON DOM. Expected at level: 2",
    ),
    (
        "bool-as-number",
        '{"inputs":[1.5,true]}',
        F32,
        "JSON Value: true Type: True is not of expected type: float",
    ),
    (
        "null",
        '{"inputs":[null]}',
        F32,
        "JSON Value: null Type: Null is not of expected type: float",
    ),
    (
        "float-as-int",
        '{"inputs":[1.0]}',
        I32,
        "JSON Value: 1.0 Type: Number is not of expected type: int32",
    ),
    (
        "int32-range",
        '{"inputs":[2147483648]}',
        I32,
        "JSON Value: 2147483648 Type: Number is not of expected type: int32",
    ),
    (
        "int8-range",
        '{"inputs":[300]}',
        {"b": DataType.INT8},
        "JSON Value: 300 Type: Number is not of expected type: int8",
    ),
    (
        "number-as-bool",
        '{"inputs":[1]}',
        {"b": DataType.BOOL},
        "JSON Value: 1 Type: Number is not of expected type: bool",
    ),
    ("web-safe-b64", '{"inputs":[{"b64":"_-8="}]}', STR, "Unable to base64 decode"),
    (
        "not-b64",
        '{"inputs":{"s":{"b65":"aa"}}}',
        STR,
        'JSON Value: {\n    "b65": "aa"\n} not formatted correctly for base64 data',
    ),
    ("number-too-big", '{"inputs":1e400}', F32, "JSON Parse error: Number too big"),
    ("rank", f'{{"inputs":{"[" * 65}1{"]" * 65}}}', I32, "64 dimensions at most, got 65"),
    ("no-inputs", '{"instances":[1]}', {}, "Failed to get input map for signature: DEFAULT"),
]


@pytest.mark.parametrize(
    ("body", "inputs", "text"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_refusals(body: str, inputs: dict[str, DataType], text: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        read(body, inputs)
    assert text in raised.value.message


def test_a_type_without_a_json_form() -> None:
    half = {"x": DataType.HALF}
    text = "Conversion of JSON Value: 1.5 to type: half"
    with pytest.raises(UnimplementedError, match=text):
        read('{"inputs":[1.5]}', half)
    with pytest.raises(InvalidArgumentError, match=f"Error: UNIMPLEMENTED: {text}"):
        read('{"instances":[1.5]}', half)


def test_strict_mode_wraps_small_integers() -> None:
    parsed = read('{"inputs":[300,-1]}', {"u": DataType.UINT8}, strict=True)
    assert parsed["u"].tolist() == [44, 255]


def test_a_signature_without_inputs() -> None:
    for body in ('{"inputs":{}}', '{"signature_name":"serving_default"}'):
        assert read(body, {}) == {}
        assert parse_document(body.encode()).predict_format is PredictFormat.COLUMNAR
        with pytest.raises(InvalidArgumentError, match="Failed to get input map"):
            read(body, {}, strict=True)


def test_long_values_are_cut_in_error_texts() -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        read(f'{{"signature_name":{list(range(1000))}}}', F32)
    assert len(raised.value.message) < 400


SCALARS = st.one_of(
    st.integers(-(1 << 70), 1 << 70), st.floats(), st.booleans(), st.text(max_size=3), st.none()
)


NESTED = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3), max_leaves=8)


@given(NESTED, st.sampled_from(list(DataType)[1:20]))
def test_any_value_gives_a_tensor_or_an_error(value: Any, data_type: DataType) -> None:
    body = json.dumps({"instances": [value], "signature_name": "s"})
    try:
        parsed = read(body, {"x": data_type})
    except OpError as error:
        assert error.message
    else:
        assert parsed["x"].shape[0] == 1
