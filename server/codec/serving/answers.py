"""Write TensorFlow Serving's JSON responses in one of two forms.

The strict form is TensorFlow Serving's response byte for byte. The compact form is always valid
JSON, except for the bare tokens of `NonFinite.TOKEN`. It differs from the strict form in white
space and in the spelling of numbers (9000000.0 for 9e+06). It writes strings that are not UTF-8 as
`{"b64": "…"}`; TensorFlow Serving's response is not valid JSON if it contains such strings.
`NonFinite` selects how the compact form writes NaN and infinities. The strict form always writes
them as bare tokens.

TF: tensorflow_serving/util/json_tensor.cc (MakeJsonFromTensors and its siblings)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import orjson

from runtime.api import DataType, dtypes
from runtime.errors import InvalidArgumentError
from server.codec.large.array_parts import LARGE_ANSWER_BYTES, content_bytes, json_parts
from server.codec.scalars import (
    NonFinite,
    base64_object,
    encode_base64,
    non_finite_word,
    text_or_base64,
)
from server.codec.serving.pretty_json import PrettyWriter
from server.codec.serving.requests import PredictFormat

WRITABLE_NUMBERS = frozenset(
    data_type.numpy
    for data_type in (
        DataType.FLOAT, DataType.DOUBLE, DataType.INT32, DataType.INT16, DataType.INT8,
        DataType.UINT8, DataType.INT64, DataType.BOOL, DataType.UINT32, DataType.UINT64,
    )
)  # fmt: skip
_WRITABLE = WRITABLE_NUMBERS | {DataType.STRING.numpy}
_KEY = {PredictFormat.ROW: "predictions", PredictFormat.COLUMNAR: "outputs"}
_BYTES_SUFFIX = "_bytes"  # outputs whose alias has this suffix are written as base64


def write_predict_response(
    outputs: Mapping[str, np.ndarray],
    predict_format: PredictFormat,
    strict: bool = False,
    non_finite: NonFinite = NonFinite.TOKEN,
) -> bytes:
    """Write the response to a predict request; a single output is written without its alias.

    Row form slices every output `[batch, …]` along its first dimension. Raises InvalidArgumentError
    if an output has a type that JSON cannot express or, in row form, if an output is a scalar or
    the batch sizes differ.
    """
    if not outputs:
        raise InvalidArgumentError("Cannot convert empty tensor map to JSON")
    is_row = predict_format is PredictFormat.ROW
    batch_size = _batch_size(outputs) if is_row else 0
    for array in outputs.values():
        if array.dtype not in _WRITABLE:
            name = dtypes.from_numpy(array.dtype).tf_name
            raise InvalidArgumentError(f"Failed to write JSON value for tensor type: {name}")
    if strict:
        return _strict_rows(outputs, batch_size) if is_row else _strict_columns(outputs)
    if _are_large(outputs.values()):
        parts = _rows_parts if is_row and len(outputs) > 1 else _columns_parts
        start = b'{"%s":' % _KEY[predict_format].encode()
        return b"".join([start, *parts(outputs, non_finite), b"}"])
    if len(outputs) == 1:
        ((alias, array),) = outputs.items()
        content = _array_json(alias, array, non_finite)
    elif is_row:
        rows = [_row_json(outputs, index, non_finite) for index in range(batch_size)]
        content = b"[%s]" % b",".join(rows)
    else:
        content = _object_json(
            {alias: _array_json(alias, array, non_finite) for alias, array in outputs.items()}
        )
    return b'{"%s":%s}' % (_KEY[predict_format].encode(), content)


def write_classify_response(
    labels: np.ndarray,
    scores: np.ndarray,
    strict: bool = False,
    non_finite: NonFinite = NonFinite.TOKEN,
) -> bytes:
    """Write the response to a classify request: `{"results": [[["label", score], …], …]}`.

    There is one list of pairs for each example. `labels` (bytes) and `scores` (float32) must both
    have the shape `[number of examples, classes]`. Raises InvalidArgumentError if there is no
    example.
    """
    if not len(labels):
        raise InvalidArgumentError("Cannot convert empty ClassificationResults to JSON")
    if strict:
        return _strict_classify(labels, scores)
    rows = []
    for example, label_row in enumerate(labels.tolist()):
        pairs = []
        for label, score in zip(label_row, scores[example], strict=True):
            text = orjson.dumps(text_or_base64(label))
            pairs.append(b"[%s,%s]" % (text, _array_json("", np.asarray(score), non_finite)))
        rows.append(b"[%s]" % b",".join(pairs))
    return b"".join([b'{"results":[', b",".join(rows), b"]}"])


def write_regress_response(
    values: np.ndarray, strict: bool = False, non_finite: NonFinite = NonFinite.TOKEN
) -> bytes:
    """Write the response to a regress request: `{"results": [value, …]}`.

    `values` must be float32 `[number of examples]`. Raises InvalidArgumentError if it is empty.
    """
    if not values.size:
        raise InvalidArgumentError("Cannot convert empty RegressionResults to JSON")
    if not strict:
        return b"".join([b'{"results":', *_array_parts("", values, non_finite), b"}"])
    writer = PrettyWriter()
    writer.start_object()
    writer.string("results")
    writer.single_line_arrays = True
    _write_nested(writer, values, _decimal_text)
    writer.end_object()
    return _encoded(writer)


def _batch_size(outputs: Mapping[str, np.ndarray]) -> int:
    """Return the size of the first dimension, which must be the same for all outputs."""
    expected: int | None = None
    for alias, array in outputs.items():
        if array.ndim == 0:
            raise InvalidArgumentError(f"Tensor name: {alias} has no shape information ")
        if expected is not None and array.shape[0] != expected:
            raise InvalidArgumentError(
                f"Tensor name: {alias} has inconsistent batch size: {array.shape[0]} "
                f"expecting: {expected}"
            )
        expected = array.shape[0]
    return expected or 0


# The compact form.


def _array_json(alias: str, array: np.ndarray, non_finite: NonFinite) -> bytes:
    if array.dtype == object:
        element = base64_object if alias.endswith(_BYTES_SUFFIX) else text_or_base64
        scalar_or_list: Any = np.frompyfunc(element, 1, 1)(array)
        return orjson.dumps(scalar_or_list.tolist() if array.ndim else scalar_or_list)
    text = orjson.dumps(
        np.ascontiguousarray(array) if array.ndim else array[()],
        option=orjson.OPT_SERIALIZE_NUMPY,
    )
    # orjson writes null for a value that is not finite, and for nothing else in an array of
    # numbers.
    if b"null" in text and non_finite is not NonFinite.NULL:
        return _with_tokens(alias, array, text, non_finite)
    return text


def _with_tokens(alias: str, array: np.ndarray, text: bytes, non_finite: NonFinite) -> bytes:
    """Replace the n-th null in `text` by the word for the n-th element that is not finite.

    Raises InvalidArgumentError if `non_finite` is ERROR.
    """
    words = [non_finite_word(value) for value in array[~np.isfinite(array)].ravel().tolist()]
    if non_finite is NonFinite.ERROR:
        raise InvalidArgumentError(
            f"Output {alias!r} holds {words[0]}, which JSON cannot express, "
            "and rest.non_finite is `error`"
        )
    pieces = text.split(b"null")
    quote = b'"' if non_finite is NonFinite.STRING else b""
    parts = [pieces[0]]
    for word, piece in zip(words, pieces[1:], strict=True):
        parts += [quote, word.encode(), quote, piece]
    return b"".join(parts)


def _are_large(arrays: Iterable[np.ndarray]) -> bool:
    """Return whether arrays have to be written in parts; strings are longer than pointers."""
    size = sum(content_bytes(array) << 4 * (array.dtype == object) for array in arrays)
    return size >= LARGE_ANSWER_BYTES


def _array_parts(alias: str, array: np.ndarray, non_finite: NonFinite) -> Iterator[bytes]:
    return json_parts(array, lambda block: _array_json(alias, block, non_finite))


def _columns_parts(outputs: Mapping[str, np.ndarray], non_finite: NonFinite) -> Iterator[bytes]:
    """Yield the text of one output without its alias, or of an object of several outputs."""
    if len(outputs) == 1:
        ((alias, array),) = outputs.items()
        yield from _array_parts(alias, array, non_finite)
        return
    separator = b"{"
    for alias, array in outputs.items():
        yield from (separator, orjson.dumps(alias), b":")
        yield from _array_parts(alias, array, non_finite)
        separator = b","
    yield b"}"


def _rows_parts(outputs: Mapping[str, np.ndarray], non_finite: NonFinite) -> Iterator[bytes]:
    """Yield the text of a list of objects, of which each has a slice of every output."""
    has_large_rows = _are_large(array[:1] for array in outputs.values())
    yield b"["
    for index in range(len(next(iter(outputs.values())))):
        if index:
            yield b","
        if has_large_rows:
            row = {k: np.asarray(array[index], array.dtype) for k, array in outputs.items()}
            yield from _columns_parts(row, non_finite)
        else:
            yield _row_json(outputs, index, non_finite)
    yield b"]"


def _row_json(outputs: Mapping[str, np.ndarray], index: int, non_finite: NonFinite) -> bytes:
    """Return the text of an object that has a slice of every output."""
    return _object_json(
        {
            # The type is stated, because numpy would make fixed-length strings of bytes.
            alias: _array_json(alias, np.asarray(array[index], array.dtype), non_finite)
            for alias, array in outputs.items()
        }
    )


def _object_json(members: Mapping[str, bytes]) -> bytes:
    return b"{%s}" % b",".join(b"%s:%s" % (orjson.dumps(k), v) for k, v in members.items())


# The strict form: TensorFlow Serving's response byte for byte.

_ElementText = Callable[[Any], str]


def _strict_rows(outputs: Mapping[str, np.ndarray], batch_size: int) -> bytes:
    writer = PrettyWriter()
    writer.start_object()
    writer.string(_KEY[PredictFormat.ROW])
    writer.start_array()
    for index in range(batch_size):
        if len(outputs) > 1:
            writer.start_object()
        writer.single_line_arrays = True
        for alias, array in outputs.items():
            if len(outputs) > 1:
                writer.string(alias)
            _write_tensor(writer, alias, np.asarray(array[index], array.dtype))
        writer.single_line_arrays = False
        if len(outputs) > 1:
            writer.end_object()
    writer.end_array()
    writer.end_object()
    return _encoded(writer)


def _strict_columns(outputs: Mapping[str, np.ndarray]) -> bytes:
    writer = PrettyWriter()
    writer.start_object()
    writer.string(_KEY[PredictFormat.COLUMNAR])
    if len(outputs) > 1:
        writer.start_object()
    for alias, array in outputs.items():
        if len(outputs) > 1:
            writer.string(alias)
        _write_tensor(writer, alias, array)
    if len(outputs) > 1:
        writer.end_object()
    writer.end_object()
    return _encoded(writer)


def _strict_classify(labels: np.ndarray, scores: np.ndarray) -> bytes:
    writer = PrettyWriter()
    writer.start_object()
    writer.string("results")
    writer.start_array()
    for example, label_row in enumerate(labels.tolist()):
        writer.single_line_arrays = True
        writer.start_array()
        for label, score in zip(label_row, scores[example], strict=True):
            writer.start_array()
            writer.string(_raw_text(label))
            writer.raw(_decimal_text(score))
            writer.end_array()
        writer.end_array()
        writer.single_line_arrays = False
    writer.end_array()
    writer.end_object()
    return _encoded(writer)


def _write_tensor(writer: PrettyWriter, alias: str, array: np.ndarray) -> None:
    if array.dtype == object and alias.endswith(_BYTES_SUFFIX):
        for item in _nested(writer, array):
            writer.start_object()
            writer.string("b64")
            writer.string(encode_base64(item))
            writer.end_object()
    elif array.dtype == object:
        for item in _nested(writer, array):
            writer.string(_raw_text(item))
    elif array.dtype.kind == "f":
        _write_nested(writer, array, _decimal_text)
    elif array.dtype.kind == "b":
        _write_nested(writer, array, lambda item: "true" if item else "false")
    else:
        _write_nested(writer, array, str)


def _write_nested(writer: PrettyWriter, array: np.ndarray, text: _ElementText) -> None:
    for item in _nested(writer, array):
        writer.raw(text(item))


def _nested(writer: PrettyWriter, array: np.ndarray) -> Iterator[Any]:
    """Yield the elements in row-major order; write the brackets of the lists around them."""
    if array.ndim == 0:
        yield array[()]
        return
    writer.start_array()
    for part in array:
        yield from _nested(writer, np.asarray(part, array.dtype))
    writer.end_array()


def _decimal_text(value: np.floating[Any]) -> str:
    """Write a number with six digits if they are exact, else with enough digits to read it back."""
    if not np.isfinite(value):
        return non_finite_word(float(value))
    text = format(float(value), ".6g")
    with np.errstate(over="ignore"):  # rounding the largest float32 overflows
        is_exact = value.dtype.type(text) == value
    if not is_exact:
        text = format(float(value), ".17g" if value.dtype.itemsize == 8 else ".9g")
    return text if "." in text or "e" in text else text + ".0"


def _raw_text(item: bytes) -> str:
    """Decode any bytes to text, from which `_encoded` restores the same bytes."""
    return item.decode("utf-8", "surrogateescape")


def _encoded(writer: PrettyWriter) -> bytes:
    return writer.encoded()
