"""TensorFlow Serving's JSON answers as data; the ids are the conformance list's."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from runtime.foundation.errors import InvalidArgumentError
from server.codec.large import array_parts
from server.codec.scalars import NonFinite
from server.codec.serving import answers, pretty_json
from server.codec.serving.answers import (
    write_classify_response,
    write_predict_response,
    write_regress_response,
)
from server.codec.serving.requests import (
    PredictFormat,
)

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


def test_strings_beside_another_output_in_row_form():
    outputs = {"label": np.array([b"cat", b"\xff"], object), "score": np.array([0.5, 1.0])}
    assert json.loads(write_predict_response(outputs, ROW)) == {
        "predictions": [{"label": "cat", "score": 0.5}, {"label": {"b64": "/w=="}, "score": 1.0}]
    }


RANDOM = np.random.default_rng(0)
LARGE = RANDOM.standard_normal((4, 50, 3)).astype(np.float32)
WITH_NAN = np.where(LARGE > 2, np.nan, np.where(LARGE < -2, np.inf, LARGE))
STRINGS = np.array([b"x", b"\xff", b'"', b""] * 50, object).reshape(4, 50)
LARGE_OUTPUTS: list[dict[str, np.ndarray]] = [
    {"x": LARGE},
    {"x": LARGE.transpose(0, 2, 1)},
    {"x": WITH_NAN},
    {"x": LARGE.astype(np.float64), "y": WITH_NAN, "s": STRINGS},
    {"x": (LARGE * 100).astype(np.int64), "b": LARGE[:, 0, 0] > 0, "s_bytes": STRINGS[:, 0]},
    {"x": np.zeros((4, 50, 0), np.float32), "y": LARGE},
]


@pytest.mark.parametrize("form", [ROW, COLUMNAR])
@pytest.mark.parametrize("outputs", LARGE_OUTPUTS)
@pytest.mark.parametrize("non_finite", [NonFinite.TOKEN, NonFinite.STRING, NonFinite.NULL])
@pytest.mark.parametrize("large", [0, 2000], ids=["large rows", "small rows"])
def test_a_large_answer_is_written_in_parts_byte_for_byte_as_at_once(
    outputs: dict[str, np.ndarray],
    form: PredictFormat,
    non_finite: NonFinite,
    large: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_once = write_predict_response(outputs, form, non_finite=non_finite)
    blocks: list[int] = []
    write = answers._array_json
    monkeypatch.setattr(answers, "LARGE_ANSWER_BYTES", large)
    monkeypatch.setattr(array_parts, "BLOCK_ELEMENTS", 16)
    monkeypatch.setattr(array_parts, "BLOCK_STRINGS", 16)
    monkeypatch.setattr(answers, "_array_json", lambda *a: (blocks.append(a[1].size), write(*a))[1])
    assert write_predict_response(outputs, form, non_finite=non_finite) == at_once
    if large == 0 or form is COLUMNAR or len(outputs) == 1:
        assert max(blocks) <= 16


def test_the_first_value_that_is_not_finite_is_named_in_a_large_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers, "LARGE_ANSWER_BYTES", 0)
    monkeypatch.setattr(array_parts, "BLOCK_ELEMENTS", 2)
    array = np.array([1, 2, 3, -np.inf, np.nan])
    with pytest.raises(InvalidArgumentError, match="Output 'x' holds -Infinity"):
        write_predict_response({"x": array}, ROW, non_finite=NonFinite.ERROR)


@pytest.mark.parametrize("form", [ROW, COLUMNAR])
def test_a_strict_answer_is_encoded_in_parts(
    form: PredictFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = {"x": LARGE, "s": STRINGS}
    at_once = write_predict_response(outputs, form, strict=True)
    monkeypatch.setattr(pretty_json, "_MAX_PARTS", 3)
    assert write_predict_response(outputs, form, strict=True) == at_once
