"""The tensors of the checkpoints in tests/fixtures/checkpoints: what was saved there."""

from __future__ import annotations

import ml_dtypes
import numpy as np

_NUMBERS = (
    np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.int16, np.int32, np.int64,
    np.uint8, np.uint16, np.uint32, np.uint64, np.complex64, np.complex128,
    ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn,
)  # fmt: skip
WORDS = np.array([[b"", b"a"], [b"\x00\xff", b"x" * 300]], object)
TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)  # saved in parts

PLAIN: dict[str, np.ndarray] = {
    **{
        f"numbers/{np.dtype(dtype).name}": np.arange(6).reshape(2, 3).astype(dtype)
        for dtype in _NUMBERS
    },
    "bool": np.array([True, False, True]),
    "scalar": np.array(2.5, np.float32),
    "empty": np.zeros((0, 3), np.float64),
    "words": WORDS,
    "word": np.array(b"one", object),
    "no words": np.zeros((0,), object),
}
# (shape_and_slice, value) of the parts of TABLE in the bundle `partitioned`.
PARTS: tuple[tuple[str, np.ndarray], ...] = (
    ("4 3 0,2:0,1", TABLE[:2, :1]),
    ("4 3 2,2:-", TABLE[2:]),
    ("4 3 0,2:1,2", TABLE[:2, 1:]),
)
# Parts far from the origin: their keys need more than one byte a number.
LONG = (np.arange(20_000) % 251).astype(np.uint8)
LONG_PARTS: tuple[tuple[str, np.ndarray], ...] = (
    ("20000 0,63", LONG[:63]),
    ("20000 63,65", LONG[63:128]),
    ("20000 128,9000", LONG[128:9128]),
    ("20000 9128,10872", LONG[9128:]),
)
# The bundle `sharded` is merged from two: TABLE in halves, and one tensor more in the second.
HALVES: tuple[tuple[str, np.ndarray], ...] = (
    ("4 3 0,2:-", TABLE[:2]),
    ("4 3 2,2:-", TABLE[2:]),
)
EXTRA = np.array(7, np.int64)
# What the V1 format can hold: (name, shape_and_slice, value).
_NOT_IN_V1 = ("numbers/bfloat16", "numbers/uint32", "numbers/uint64", "numbers/float8")
V1: tuple[tuple[str, str, np.ndarray], ...] = (
    *((name, "", value) for name, value in PLAIN.items() if not name.startswith(_NOT_IN_V1)),
    *(("table", spec, value) for spec, value in PARTS),
)
