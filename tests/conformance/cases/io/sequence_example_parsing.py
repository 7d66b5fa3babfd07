"""Parsing of tf.SequenceExample: contexts and feature lists, of one example and of batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import protos as pb
from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, case

FLOAT, INT64, STRING, INT32 = DataType.FLOAT, DataType.INT64, DataType.STRING, DataType.INT32
NOTHING = np.empty(0, np.float32)


def fill(feature: pb.Feature, values: Sequence[Any]) -> None:
    kind = type(values[0]) if values else None
    if kind is bytes:
        feature.bytes_list.value.extend(values)
    elif kind is float:
        feature.float_list.value.extend(values)
    elif kind is int:
        feature.int64_list.value.extend(values)


def sequence(context: Mapping[str, Any], lists: Mapping[str, Any]) -> bytes:
    message = pb.SequenceExample()
    for key, values in context.items():
        fill(message.context.feature[key], values)
    for key, frames in lists.items():
        message.feature_lists.feature_list[key].SetInParent()
        for values in frames:
            fill(message.feature_lists.feature_list[key].feature.add(), values)
    return message.SerializeToString(deterministic=True)


A = sequence(
    {"id": [7], "tags": [b"x", b"y"]},
    {"words": [[b"a", b"b"], [b"c"]], "points": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]},
)
B = sequence({"id": [8]}, {"words": [[b"d"]], "points": [[7.0, 8.0]]})
BARE = sequence({}, {"words": [[], [b"e"]], "points": []})
ODD = sequence({"id": [1.5]}, {"words": [[1]], "points": [[1.0]]})
NO_POINTS = sequence({"id": [9]}, {})
UNEVEN = sequence({"id": [9]}, {"points": [[1.0], [2.0, 3.0, 4.0]]})
INCOMPLETE = sequence({"id": [9]}, {"points": [[1.0, 2.0], [3.0]]})


def strings(values: Sequence[Any]) -> np.ndarray:
    return np.array(list(values), object)


SPECS: dict[str, dict[str, Any]] = {
    "everything": {
        "context_sparse": {"tags": STRING},
        "context_dense": {"id": (INT64, (), [])},
        "list_sparse": {"words": STRING},
        "list_dense": {"points": (FLOAT, (2,))},
    },
    "context_default": {
        "context_dense": {"id": (INT64, (), -1)},
        "list_sparse": {"words": STRING, "zz": INT64},
    },
    "context_type": {"context_sparse": {"id": INT64}},
    "list_type": {"list_sparse": {"words": STRING}},
    "dense": {"list_dense": {"points": (FLOAT, (2,))}},
    "dense_may_be_missing": {
        "list_dense": {"points": (FLOAT, (2,))},
        "may_be_missing": ["points"],
    },
    "dense_string": {"list_dense": {"words": (STRING, (1,))}, "may_be_missing": ["words"]},
}
GIVEN = {
    "two": [A, B],
    "bare": [A, BARE],
    "odd": [ODD],
    "no_points": [A, NO_POINTS],
    "none": [],
}


def attrs(spec: Mapping[str, Any]) -> dict[str, Any]:
    context_dense = spec.get("context_dense", {})
    list_dense = spec.get("list_dense", {})
    return {
        "Ncontext_sparse": len(spec.get("context_sparse", {})),
        "Nfeature_list_sparse": len(spec.get("list_sparse", {})),
        "Nfeature_list_dense": len(list_dense),
        "context_sparse_types": tuple(spec.get("context_sparse", {}).values()),
        "Tcontext_dense": tuple(kind for kind, _, _ in context_dense.values()),
        "context_dense_shapes": tuple(shape for _, shape, _ in context_dense.values()),
        "feature_list_sparse_types": tuple(spec.get("list_sparse", {}).values()),
        "feature_list_dense_types": tuple(kind for kind, _ in list_dense.values()),
        "feature_list_dense_shapes": tuple(shape for _, shape in list_dense.values()),
    }


def defaults(spec: Mapping[str, Any]) -> list[np.ndarray]:
    dense = spec.get("context_dense", {})
    return [np.asarray(default, kind.numpy) for kind, _, default in dense.values()]


def keys(spec: Mapping[str, Any]) -> list[list[str]]:
    return [
        list(spec.get(part, {}))
        for part in ("context_sparse", "context_dense", "list_sparse", "list_dense")
    ]


def by_attributes(name: str, given: Any, message: bool = False) -> Case:
    spec = SPECS[name]
    serialized = GIVEN[given] if isinstance(given, str) else given
    label = given if isinstance(given, str) else f"counts_{WRONG_COUNTS.index(given)}"
    names = (
        "context_sparse_keys",
        "context_dense_keys",
        "feature_list_sparse_keys",
        "feature_list_dense_keys",
    )
    return case(
        "ParseSequenceExample",
        strings(serialized),
        strings([]),
        defaults(spec),
        name=f"attributes_{name}_{label}",
        message=message,
        feature_list_dense_missing_assumed_empty=tuple(spec.get("may_be_missing", ())),
        Ncontext_dense=len(spec.get("context_dense", {})),
        **dict(zip(names, map(tuple, keys(spec)), strict=True)),
        **attrs(spec),
    )


def by_inputs(
    name: str, given: Any, ragged: bool = False, shape_only: bool = False, message: bool = False
) -> Case:
    spec = SPECS[name]
    serialized = GIVEN[given] if isinstance(given, str) else given
    context_sparse, context_dense, list_sparse, list_dense = map(strings, keys(spec))
    missing = [key in spec.get("may_be_missing", ()) for key in list_dense]
    options = attrs(spec)
    if ragged:
        options |= {
            "context_ragged_value_types": (STRING, INT64),
            "context_ragged_split_types": (INT32, INT64),
            "feature_list_ragged_value_types": (STRING, FLOAT),
            "feature_list_ragged_split_types": (INT64, INT32),
        }
    return case(
        "ParseSequenceExampleV2",
        strings(serialized) if isinstance(serialized, list) else serialized,
        strings([]),
        context_sparse,
        context_dense,
        strings(["tags", "id"] if ragged else []),
        list_sparse,
        list_dense,
        strings(["words", "points"] if ragged else []),
        np.array(missing, np.bool_),
        defaults(spec),
        shape_only=shape_only,
        message=message,
        **options,
    )


def single(
    name: str,
    serialized: bytes,
    message: bool = False,
    shape: tuple[int, ...] = (),
    absent: tuple[int, ...] = (-1,),
) -> Case:
    """ParseSingleSequenceExample; the op requires the keys' `shape` to be that of a scalar.

    `absent` is the shape of feature_list_dense_missing_assumed_empty, which must be a vector.
    """
    spec = SPECS[name]
    return case(
        "ParseSingleSequenceExample",
        serialized,
        strings(spec.get("may_be_missing", [])).reshape(absent),
        *([strings([each]).reshape(shape) for each in group] for group in keys(spec)),
        defaults(spec),
        "debug",
        message=message,
        Ncontext_dense=len(spec.get("context_dense", {})),
        **attrs(spec),
    )


SPECS["beside_ragged"] = {"list_dense": {"other": (INT64, ())}, "may_be_missing": ["other"]}
ONE = {"a": A, "b": B, "bare": BARE, "odd": ODD, "no_points": NO_POINTS}

# Without an empty batch of a required context feature: only TensorFlow rejects it.
# The largest number of values in the batch decides which error is reported first.
WRONG_COUNTS = ([UNEVEN], [INCOMPLETE], [UNEVEN, INCOMPLETE], [INCOMPLETE, INCOMPLETE, B])
COMBINATIONS = [
    (name, given) for name in SPECS for given in GIVEN if (name, given) != ("everything", "none")
]

CASES = (
    *(by_attributes(name, given) for name, given in COMBINATIONS),
    *(by_inputs(name, given) for name, given in COMBINATIONS),
    *(by_inputs("beside_ragged", given, ragged=True) for given in GIVEN),
    *(by_inputs(name, A) for name in SPECS),
    # Of a scalar TensorFlow leaves the row splits uninitialised: only their shape is compared.
    by_inputs("beside_ragged", A, ragged=True, shape_only=True),
    *(single(name, given) for name in SPECS for given in ONE.values()),
    *(by_inputs("dense", given, message=True) for given in WRONG_COUNTS),
    *(by_attributes("dense", given, message=True) for given in WRONG_COUNTS),
    *(single("dense", given[0], message=True) for given in WRONG_COUNTS if len(given) == 1),
    *(single(name, A, message=True, shape=(1,)) for name in SPECS),
    single("list_type", A, message=True, absent=(1, 0)),
    by_inputs("everything", [b"\x0a\x05ab"]),
    by_inputs("everything", strings([[A]])),
)
