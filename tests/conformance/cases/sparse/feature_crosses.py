"""SparseCross in its three versions."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, case


def int64(values: object) -> np.ndarray:
    return np.array(values, np.int64)


def words(*values: bytes) -> np.ndarray:
    return np.array(values, object)


def crossed(op: str, *extra: Any, message: bool = False, attrs: Any = None, **changed: Any) -> Case:
    """Return a case with two sparse and two dense columns, replaced as `changed` says."""
    inputs = {**COLUMNS, **changed}
    return case(op, *inputs.values(), *extra, message=message, **(attrs or {}))


FIRST, SECOND = int64([[0, 0], [0, 1], [1, 0]]), int64([[0, 0], [1, 0], [1, 1]])
SHAPE = int64([2, 2])
VALUES = [words(b"a", b"b", b"c"), int64([11, -22, 1 << 40 | 3])]
DENSE = [words(b"x", b"y").reshape(2, 1), int64([[5, 6], [7, 8]])]
COLUMNS: dict[str, list[np.ndarray]] = {
    "indices": [FIRST, SECOND],
    "values": VALUES,
    "shapes": [SHAPE, SHAPE],
    "dense": DENSE,
}
NOTHING = {"indices": [], "values": [], "shapes": [], "dense": []}
DASH = np.array(b"-", object)
SALT = int64([137, -5])

BAD: tuple[dict[str, Any], ...] = (
    {"indices": [FIRST[0], SECOND]}, {"indices": [FIRST[:, :1], SECOND]},
    {"indices": [FIRST[:2], SECOND]}, {"values": [VALUES[0].reshape(1, 3), VALUES[1]]},
    {"values": [VALUES[0][:2], VALUES[1]]}, {"shapes": [SHAPE.reshape(1, 2), SHAPE]},
    {"shapes": [int64([2, 2, 2]), SHAPE]}, {"shapes": [int64([3, 2]), SHAPE]},
    {"dense": [DENSE[0][0], DENSE[1]]}, {"dense": [DENSE[0], DENSE[1][:1]]},
)  # fmt: skip
GOOD: tuple[dict[str, Any], ...] = (
    {}, {"indices": [FIRST + 5, SECOND]}, {"dense": [DENSE[0][:, :0], DENSE[1]]}, {"dense": []},
    {"indices": [FIRST[:0], SECOND], "values": [VALUES[0][:0], VALUES[1]]},
    {"indices": [], "values": [], "shapes": []},
    {"indices": [FIRST], "values": VALUES[1:], "shapes": [SHAPE], "dense": []},
)  # fmt: skip

# Elements from the first row index out of order, or outside of the batch, are ignored.
ODD_ROWS = tuple(
    {"indices": [int64(indices)], "values": VALUES[1:], "shapes": [SHAPE], "dense": []}
    for indices in ([[0, 0], [1, 0], [0, 1]], [[0, 0], [-1, 0], [1, 0]], [[0, 0], [2, 0], [1, 0]],
                    [[2, 0], [0, 0], [1, 0]], [[1, 0], [1, 0], [0, 0]])
)  # fmt: skip
HASHING = {"hashed_output": False, "num_buckets": 100, "hash_key": 956888297470}

CASES = (
    *(crossed("SparseCrossV2", DASH, **each) for each in ODD_ROWS),
    crossed("SparseCrossHashed", int64([97]), np.array([[True]]), SALT, dense=[]),
    *(  # Columns of strings only; `out_type` decides whether they are hashed.
        crossed(
            "SparseCross",
            attrs={**HASHING, "out_type": out_type, "internal_type": DataType.STRING},
            message=True,
            **each,
        )
        for out_type in (DataType.INT64, DataType.STRING)
        for each in (
            {},
            {"indices": [FIRST], "values": VALUES[:1], "shapes": [SHAPE]},
            {"indices": [FIRST], "values": VALUES[:1], "shapes": [SHAPE], "dense": DENSE[:1]},
        )
    ),
    *(crossed("SparseCrossV2", DASH, **each) for each in GOOD),
    *(crossed("SparseCrossV2", DASH, message=True, **each) for each in BAD),
    crossed("SparseCrossV2", words(b"-"), message=True),
    *(
        crossed("SparseCrossHashed", int64(0), np.bool_(False), int64(salt), message=True)
        for salt in ([1], 1, [])
    ),
    *(
        crossed("SparseCrossHashed", int64(buckets), np.bool_(strong), SALT, **each)
        for each in GOOD
        # TensorFlow crashes for strong hashes of dense columns.
        for strong in ((False, True) if each.get("dense") == [] else (False,))
        for buckets in (0, 97)
    ),
    *(
        crossed(
            "SparseCross",
            attrs={
                "hashed_output": hashed, "num_buckets": buckets, "hash_key": key,
                "out_type": DataType.INT64 if hashed else DataType.STRING,
                "internal_type": DataType.INT64,
            },
            **each,
        )
        for each in GOOD
        for hashed, buckets, key in (
            (False, 0, 1), (True, 0, 956888297470), (True, 100, 956888297470),
        )
    ),
)  # fmt: skip
