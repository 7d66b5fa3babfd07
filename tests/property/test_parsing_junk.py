"""For arbitrary bytes the parsing kernels return values or raise an OpError, nothing else.

The bytes are random, or valid messages with a few bytes changed, which are parsed further.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import protos as pb
from runtime.foundation.errors import OpError
from runtime.framework.dtypes import DataType
from runtime.framework.tensor_codec import tensor_to_proto
from runtime.kernels.io.csv_decoding import decode_csv
from runtime.kernels.io.example_parsing import parse_example_v2
from runtime.kernels.io.record_decoding import decode_compressed, decode_padded_raw, decode_raw
from runtime.kernels.io.sequence_example_parsing import parse_sequence_example_v2
from runtime.kernels.io.tensor_serialization import parse_tensor

FLOAT, INT64, STRING = DataType.FLOAT, DataType.INT64, DataType.STRING
NO_STRINGS = np.empty(0, object)


def _example() -> pb.Example:
    message = pb.Example()
    message.features.feature["a"].float_list.value.extend([1.0, 2.0])
    message.features.feature["b"].int64_list.value.extend([1, 2, 3])
    message.features.feature["c"].bytes_list.value.extend([b"x", b"yz"])
    return message


def _sequence_example() -> pb.SequenceExample:
    message = pb.SequenceExample()
    message.context.CopyFrom(_example().features)
    for key in ("a", "b", "c"):
        frames = message.feature_lists.feature_list[key].feature
        frames.add().CopyFrom(_example().features.feature[key])
        frames.add().CopyFrom(_example().features.feature[key])
    return message


VALID = {
    "example": _example().SerializeToString(deterministic=True),
    "sequence": _sequence_example().SerializeToString(deterministic=True),
    "tensor": tensor_to_proto(np.arange(6.0)).SerializeToString(deterministic=True),
    "csv": b'1,"a ""quoted"" word",2.5\n',
}


@st.composite
def damaged(draw: st.DrawFn, valid: bytes) -> bytes:
    """`valid` with some bytes replaced, and sometimes truncated."""
    text = bytearray(valid)
    for _ in range(draw(st.integers(1, 4))):
        text[draw(st.integers(0, len(text) - 1))] = draw(st.integers(0, 255))
    return bytes(text[: draw(st.integers(0, len(text)))])


def junk(kind: str) -> st.SearchStrategy[bytes]:
    return st.binary(max_size=80) | damaged(VALID[kind])


def strings(*items: Any) -> np.ndarray:
    array = np.empty(len(items), object)
    array[:] = items
    return array


def answers_or_refuses(call: Callable[[], Any]) -> None:
    try:
        result = call()
    except OpError:
        return
    assert result is not None


@given(st.lists(junk("example"), max_size=3))
@settings(deadline=None)
def test_parse_example(serialized: list[bytes]) -> None:
    answers_or_refuses(
        lambda: parse_example_v2(
            strings(*serialized),
            NO_STRINGS,
            strings(b"b"),
            strings(b"a", b"c"),
            strings(b"c"),
            np.zeros(2, np.float32),
            strings(b""),
            num_sparse=1,
            sparse_types=(INT64,),
            Tdense=(FLOAT, STRING),
            dense_shapes=((2,), (-1,)),
            ragged_value_types=(STRING,),
            ragged_split_types=(INT64,),
        )
    )


@given(st.lists(junk("sequence"), max_size=3))
@settings(deadline=None)
def test_parse_sequence_example(serialized: list[bytes]) -> None:
    answers_or_refuses(
        lambda: parse_sequence_example_v2(
            strings(*serialized),
            NO_STRINGS,
            strings(b"b"),
            strings(b"a"),
            strings(b"c"),
            strings(b"b"),
            strings(b"a"),
            strings(b"c"),
            np.array([True]),
            np.zeros(2, np.float32),
            Tcontext_dense=(FLOAT,),
            context_sparse_types=(INT64,),
            context_ragged_value_types=(STRING,),
            context_ragged_split_types=(INT64,),
            context_dense_shapes=((2,),),
            feature_list_dense_types=(FLOAT,),
            feature_list_sparse_types=(INT64,),
            feature_list_ragged_value_types=(STRING,),
            feature_list_ragged_split_types=(INT64,),
            feature_list_dense_shapes=((2,),),
        )
    )


@given(junk("tensor"), st.sampled_from([DataType.DOUBLE, FLOAT, STRING]))
@settings(deadline=None)
def test_parse_tensor(serialized: bytes, out_type: DataType) -> None:
    answers_or_refuses(lambda: parse_tensor(strings(serialized)[0], out_type=out_type))


@given(st.lists(junk("csv"), max_size=3), st.booleans())
@settings(deadline=None)
def test_decode_csv(lines: list[bytes], use_quote_delim: bool) -> None:
    answers_or_refuses(
        lambda: decode_csv(
            strings(*lines),
            np.zeros(1, np.int64),
            strings(b""),
            np.zeros(1, np.float32),
            OUT_TYPE=(INT64, STRING, FLOAT),
            field_delim=",",
            use_quote_delim=use_quote_delim,
            na_value="",
            select_cols=(),
        )
    )


@given(
    st.lists(st.binary(max_size=20), max_size=3),
    st.sampled_from([DataType.INT16, DataType.DOUBLE, DataType.BOOL, DataType.COMPLEX64]),
    st.booleans(),
    st.integers(-4, 24),
)
@settings(deadline=None)
def test_decode_raw(
    items: list[bytes], out_type: DataType, little_endian: bool, fixed_length: int
) -> None:
    records = strings(*items)
    answers_or_refuses(lambda: decode_raw(records, out_type=out_type, little_endian=little_endian))
    answers_or_refuses(
        lambda: decode_padded_raw(
            records, np.int32(fixed_length), out_type=out_type, little_endian=little_endian
        )
    )


@given(st.binary(max_size=40), st.sampled_from(["ZLIB", "GZIP", "ZSTD", "LZ4", ""]))
@settings(deadline=None)
def test_decode_compressed(item: bytes, compression_type: str) -> None:
    answers_or_refuses(lambda: decode_compressed(strings(item), compression_type=compression_type))
