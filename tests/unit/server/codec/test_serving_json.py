"""TensorFlow Serving's JSON contract as data: what goes in, what must come out.

The numbers in the ids are those of the conformance list that TensorFlow Serving's own tests give.
"""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import protos as pb
from runtime.foundation.errors import InvalidArgumentError, OpError, UnimplementedError
from runtime.framework.dtypes import DataType
from server.codec.json_to_tensor import TensorReader
from server.codec.serving_examples_json import examples_tensor
from server.codec.serving_json import (
    PredictFormat,
    parse_document,
    predict_inputs,
    signature_name,
)
from server.codec.serving_json_writer import (
    NonFinite,
    write_classify_response,
    write_predict_response,
    write_regress_response,
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


@given(NESTED, st.sampled_from([*F32.values(), *F64.values(), *I32.values(), DataType.INT64,
                                DataType.UINT64, DataType.INT8, DataType.BOOL]))  # fmt: skip
def test_the_fast_path_agrees_with_the_slow_one(value: Any, data_type: DataType) -> None:
    parsed = parse_document(json.dumps({"v": value}).encode())
    reader = TensorReader(exact_range=True)
    fast = reader.fast_array(parsed.members["v"], data_type)
    if fast is not None:
        slow = reader.slow_array(parsed.members["v"], data_type)
        assert fast.dtype == slow.dtype
        np.testing.assert_array_equal(fast, slow)


def test_a_long_string_among_numbers_takes_no_memory() -> None:
    body = json.dumps({"inputs": [1.0] * 100_000 + ["x" * 1_000_000]})
    with pytest.raises(InvalidArgumentError, match="is not of expected type: float") as raised:
        read(body, F32)
    assert len(raised.value.message) < 1000


@pytest.mark.parametrize(
    ("value", "data_type"),
    [
        ([[1.5, 2], [3, 4]], DataType.FLOAT),
        (7, DataType.INT64),
        ([[[-1], [2**31 - 1]]], DataType.INT32),
        ([2**64 - 1], DataType.UINT64),
        ([True, False], DataType.BOOL),
    ],
)
def test_regular_values_take_the_fast_path(value: Any, data_type: DataType) -> None:
    fast = TensorReader(exact_range=True).fast_array(value, data_type)
    np.testing.assert_array_equal(fast, np.array(value, data_type.numpy), strict=True)


@given(NESTED, st.sampled_from(list(DataType)[1:20]))
def test_any_value_gives_a_tensor_or_an_error(value: Any, data_type: DataType) -> None:
    body = json.dumps({"instances": [value], "signature_name": "s"})
    try:
        parsed = read(body, {"x": data_type})
    except OpError as error:
        assert error.message
    else:
        assert parsed["x"].shape[0] == 1


# Answers.

INTS = np.array([[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 0], [1, 2]]], np.int32)
WORDS = np.array([[b"hello", b"world"], [b"df", b"serving"]], object)
FLOATS = np.array([9000000, 999999, 0.5, 0.0003, 0.00003, 555557.5], np.float32)
NON_FINITE = np.array([[np.nan, np.inf], [3, -np.inf]], np.float32)
ROW, COLUMNAR = PredictFormat.ROW, PredictFormat.COLUMNAR

STRICT_ANSWERS: list[tuple[str, dict[str, np.ndarray], PredictFormat, str]] = [
    (
        "55-row",
        {"x": INTS},
        ROW,
        """{
    "predictions": [[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 0], [1, 2]]
    ]
}""",
    ),
    (
        "56-columnar",
        {"x": np.arange(1, 4, dtype=np.int64)},
        COLUMNAR,
        """{
    "outputs": [
        1,
        2,
        3
    ]
}""",
    ),
    (
        "57",
        {"str_tensor_bytes": WORDS[:1, :1]},
        ROW,
        """{
    "predictions": [[{
                "b64": "aGVsbG8="
            }]
    ]
}""",
    ),
    (
        "58",
        {"x": FLOATS},
        ROW,
        """{
    "predictions": [9e+06, 999999.0, 0.5, 0.0003, 3e-05, 555557.5
    ]
}""",
    ),
    (
        "59",
        {"x": NON_FINITE},
        ROW,
        """{
    "predictions": [[NaN, Infinity], [3.0, -Infinity]
    ]
}""",
    ),
    (
        "63",
        {"a": np.array([1, 2], np.uint8), "b": np.array([True, False]), "c": WORDS},
        ROW,
        """{
    "predictions": [
        {
            "a": 1,
            "b": true,
            "c": ["hello", "world"]
        },
        {
            "a": 2,
            "b": false,
            "c": ["df", "serving"]
        }
    ]
}""",
    ),
    ("65", {"x": np.empty((0, 2), np.float32)}, ROW, '{\n    "predictions": []\n}'),
    ("scalar", {"x": np.array(0.1)}, COLUMNAR, '{\n    "outputs": 0.1\n}'),
    (
        "columns",
        {"a": np.array(2, np.float32), "b": np.array([0.1], np.float32)},
        COLUMNAR,
        """{
    "outputs": {
        "a": 2.0,
        "b": [
            0.1
        ]
    }
}""",
    ),
    (
        "precision",
        {"x": np.array([1 / 3, 16777216, 3.4028235e38, -0.0], np.float32)},
        ROW,
        """{
    "predictions": [0.333333343, 16777216.0, 3.40282347e+38, -0.0
    ]
}""",
    ),
]


@pytest.mark.parametrize(
    ("outputs", "form", "text"), [c[1:] for c in STRICT_ANSWERS], ids=[c[0] for c in STRICT_ANSWERS]
)
def test_strict_answers(outputs: dict[str, np.ndarray], form: PredictFormat, text: str) -> None:
    assert write_predict_response(outputs, form, strict=True).decode() == text


@pytest.mark.parametrize(
    ("outputs", "form"), [c[1:3] for c in STRICT_ANSWERS], ids=[c[0] for c in STRICT_ANSWERS]
)
def test_compact_answers_have_the_same_content(
    outputs: dict[str, np.ndarray], form: PredictFormat
) -> None:
    compact = write_predict_response(outputs, form)
    strict = json.loads(write_predict_response(outputs, form, strict=True))
    assert b"\n" not in compact
    assert _as_float32(json.loads(compact)) == _as_float32(strict)


def _as_float32(value: Any) -> Any:
    """Numbers rounded to float32, NaN as a word: what can be compared."""
    if isinstance(value, dict):
        return {key: _as_float32(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_float32(item) for item in value]
    return str(np.float32(value)) if isinstance(value, float) else value


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (NonFinite.TOKEN, b'{"outputs":[[NaN,Infinity],[3.0,-Infinity]]}'),
        (NonFinite.STRING, b'{"outputs":[["NaN","Infinity"],[3.0,"-Infinity"]]}'),
        (NonFinite.NULL, b'{"outputs":[[null,null],[3.0,null]]}'),
    ],
)
def test_non_finite_policies(policy: NonFinite, text: bytes) -> None:
    assert write_predict_response({"x": NON_FINITE}, COLUMNAR, non_finite=policy) == text


def test_non_finite_as_an_error_names_the_output() -> None:
    with pytest.raises(InvalidArgumentError, match="Output 'x' holds NaN"):
        write_predict_response({"x": NON_FINITE}, COLUMNAR, non_finite=NonFinite.ERROR)


def test_strings_that_are_not_utf8() -> None:
    outputs = {"s": np.array([b"\xff"], object)}
    assert write_predict_response(outputs, COLUMNAR) == b'{"outputs":[{"b64":"/w=="}]}'
    assert b'"\xff"' in write_predict_response(outputs, COLUMNAR, strict=True)


ANSWER_ERRORS: list[tuple[str, dict[str, np.ndarray], PredictFormat, str]] = [
    ("60", {}, ROW, "Cannot convert empty tensor map to JSON"),
    (
        "61",
        {"x": np.array([1j], np.complex64)},
        ROW,
        "Failed to write JSON value for tensor type: complex64",
    ),
    ("62", {"x": np.array(1, np.float32)}, ROW, "Tensor name: x has no shape information "),
    (
        "64",
        {"x": FLOATS[:2], "y": FLOATS[:1]},
        ROW,
        "Tensor name: y has inconsistent batch size: 1 expecting: 2",
    ),
    (
        "66",
        {"x": FLOATS[:0], "y": FLOATS[:1]},
        ROW,
        "Tensor name: y has inconsistent batch size: 1 expecting: 0",
    ),
]


@pytest.mark.parametrize(
    ("outputs", "form", "text"), [c[1:] for c in ANSWER_ERRORS], ids=[c[0] for c in ANSWER_ERRORS]
)
@pytest.mark.parametrize("strict", [False, True])
def test_answer_errors(
    outputs: dict[str, np.ndarray], form: PredictFormat, text: str, strict: bool
) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        write_predict_response(outputs, form, strict=strict)
    assert raised.value.message == text


def test_several_empty_outputs_give_no_rows() -> None:  # 65
    outputs = {"x": FLOATS[:0], "y": WORDS[:0]}
    assert write_predict_response(outputs, ROW) == b'{"predictions":[]}'


# Examples.


def examples(body: str) -> list[dict[str, list[Any]]]:
    """The features of each example that a body makes."""
    tensor = examples_tensor(parse_document(body.encode()))
    parsed = [pb.Example.FromString(item) for item in tensor]
    return [
        {
            name: list(getattr(feature, feature.WhichOneof("kind")).value)
            for name, feature in example.features.feature.items()
        }
        for example in parsed
    ]


def test_examples() -> None:  # 67
    assert examples(
        '{"examples":[{"names":["foo","bar"],"ratings":[8.0,9.0],"age":20},'
        '{"names":["baz"],"ratings":6.0}]}'
    ) == [
        {"names": [b"foo", b"bar"], "ratings": [8.0, 9.0], "age": [20]},
        {"names": [b"baz"], "ratings": [6.0]},
    ]


def test_examples_with_context() -> None:  # 68
    (features,) = examples(
        '{"context":{"query":{"b64":"aGVsbG8="}},"examples":[{"f":[NaN,Infinity,-Infinity],'
        '"flags":[1,true,false]}]}'
    )
    assert features["query"] == [b"hello"]
    assert features["flags"] == [1, 1, 0]
    assert np.isnan(features["f"][0])
    assert features["f"][1:] == [math.inf, -math.inf]


BAD_EXAMPLES = [
    ("69", '{"context":[1],"examples":[{}]}', "Example must be JSON object but got JSON Array"),
    ("70", '{"examples":{}}', "Expecting 'examples' value to be an list/array"),
    ("71", '{"examples":[[{"a":1}]]}', "Example must be JSON object but got JSON Array"),
    (
        "72",
        '{"examples":[{"names":[10,null]}]}',
        "Feature: names has element with unexpected JSON type: Null",
    ),
    (
        "73",
        '{"examples":[{"names":[10,10.0]}]}',
        "Unexpected element type in feature: names expecting type: int64",
    ),
    (
        "74",
        '{"examples":[{"names":[10,{"test":10}]}]}',
        "Feature: names has element with unexpected JSON type: Object",
    ),
    (
        "75",
        '{"examples":[{"names":[[10],20]}]}',
        "Feature: names has element with unexpected JSON type: Array",
    ),
    (
        "76",
        '{"examples":[{"names":[20,18446744073709551603]}]}',
        "Feature: names has uint64_t element. Only int64_t is supported.",
    ),
    ("no-examples", '{"x":1}', "key 'examples' is expected and was not found"),
    ("empty", '{"examples":[]}', "'examples' value is an empty array"),
]


@pytest.mark.parametrize(
    ("body", "text"), [c[1:] for c in BAD_EXAMPLES], ids=[c[0] for c in BAD_EXAMPLES]
)
def test_bad_examples(body: str, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        examples(body)
    assert text in raised.value.message


def test_regress_answers() -> None:  # 77
    values = np.array([0.2, np.inf, 1, -np.inf, np.nan], np.float32)
    assert write_regress_response(values) == b'{"results":[0.2,Infinity,1.0,-Infinity,NaN]}'
    assert (
        write_regress_response(values, strict=True)
        == b'{\n    "results": [0.2, Infinity, 1.0, -Infinity, NaN]\n}'
    )


def test_classify_answers() -> None:
    labels = np.array([[b"a", b""], [b"b", b"c"]], object)
    scores = np.array([[0.1, np.inf], [12, -1]], np.float32)
    assert (
        write_classify_response(labels, scores)
        == b'{"results":[[["a",0.1],["",Infinity]],[["b",12.0],["c",-1.0]]]}'
    )
    assert (
        write_classify_response(labels, scores, strict=True)
        == b'{\n    "results": [[["a", 0.1], ["", Infinity]], [["b", 12.0], ["c", -1.0]]\n    ]\n}'
    )


def test_empty_results() -> None:  # 78
    with pytest.raises(InvalidArgumentError, match="empty ClassificationResults"):
        write_classify_response(np.empty((0, 2), object), np.empty((0, 2), np.float32))
    with pytest.raises(InvalidArgumentError, match="empty RegressionResults"):
        write_regress_response(np.empty(0, np.float32))
