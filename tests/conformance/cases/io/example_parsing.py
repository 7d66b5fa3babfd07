"""tf.Example messages parsed to dense, padded, sparse and ragged tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import protos as pb
from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, case

FLOAT, INT64, STRING, INT32 = DataType.FLOAT, DataType.INT64, DataType.STRING, DataType.INT32


def example(**features: Any) -> bytes:
    """Return a serialized Example; a value of None makes a feature without a list."""
    message = pb.Example()
    for key, values in features.items():
        feature = message.features.feature[key]
        if values is None:
            continue
        kind = type(values[0]) if values else int
        field = {bytes: feature.bytes_list, float: feature.float_list, int: feature.int64_list}
        field[kind].value.extend(values)
        if not values:
            feature.int64_list.SetInParent()
    return message.SerializeToString(deterministic=True)


A = example(a=[1.0, 2.0], b=[1, 2, 3], c=[b"x"])
B = example(a=[3.0, 4.0], b=[], c=[b"y", b"z"])
SHORT = example(b=[7])
ODD = example(a=[1], b=None)
NOTHING = np.empty(0, np.float32)


def strings(values: Sequence[Any]) -> np.ndarray:
    return np.array(list(values), object)


def parse(
    serialized: Any,
    dense: Mapping[str, tuple[DataType, Any, Any]] | None = None,
    sparse: Mapping[str, DataType] | None = None,
    ragged: Mapping[str, tuple[DataType, DataType]] | None = None,
    names: Sequence[Any] = (),
    version: int = 2,
    **options: Any,
) -> Case:
    """Dense features are {key: (type, shape, default)}, ragged {key: (type, split type)}."""
    dense, sparse, ragged = dense or {}, sparse or {}, ragged or {}
    defaults = [np.asarray(default, kind.numpy) for kind, _, default in dense.values()]
    attrs: dict[str, Any] = {
        "sparse_types": tuple(sparse.values()),
        "dense_shapes": tuple(shape for _, shape, _ in dense.values()),
        "Tdense": tuple(kind for kind, _, _ in dense.values()),
    }
    given = strings(serialized) if isinstance(serialized, list) else serialized
    options.setdefault("message", True)
    if version == 1:
        attrs |= {"Nsparse": len(sparse), "Ndense": len(dense)}
        keys: list[Any] = [list(sparse), list(dense)]
        return case("ParseExample", given, strings(names), *keys, defaults, **attrs, **options)
    attrs |= {
        "num_sparse": len(sparse),
        "ragged_value_types": tuple(kind for kind, _ in ragged.values()),
        "ragged_split_types": tuple(split for _, split in ragged.values()),
    }
    keys = [strings(sparse), strings(dense), strings(ragged)]
    return case("ParseExampleV2", given, strings(names), *keys, defaults, **attrs, **options)


FIXED = {"a": (FLOAT, (2,), NOTHING)}
WITH_DEFAULT = {"a": (FLOAT, (2,), [9.0, 8.0])}
BOTH = [
    ([A, B], {"dense": FIXED, "sparse": {"b": INT64}}),
    ([A, SHORT], {"dense": FIXED}),
    ([A, SHORT], {"dense": FIXED, "names": ["first", "second"]}),
    ([A, SHORT], {"dense": WITH_DEFAULT}),
    ([A, ODD], {"dense": WITH_DEFAULT}),
    ([A, ODD], {"sparse": {"a": FLOAT}, "names": ["first", "second"]}),
    ([A], {"dense": {"a": (FLOAT, (3,), NOTHING)}}),
    ([A], {"dense": {"a": (FLOAT, (), NOTHING)}}),
    ([A, B], {"dense": {"a": (FLOAT, (1, 2), NOTHING)}}),
    ([A, B], {"dense": {"a": (INT64, (2,), NOTHING)}}),
    ([A, B, SHORT], {"dense": {"a": (FLOAT, (-1,), [0.0])}}),
    ([A, B, SHORT], {"dense": {"a": (FLOAT, (-1,), 7.0)}}),
    ([A, B, SHORT], {"dense": {"c": (STRING, (-1,), ["pad"])}}),
    ([A, B], {"dense": {"a": (FLOAT, (-1, 2), 0.0)}}),
    ([A, B], {"dense": {"b": (INT64, (-1, 2), 0)}}),
    ([A, B], {"dense": {"c": (STRING, (-1, 3), "")}}),
    ([A, B], {"dense": {"a": (FLOAT, (-1, 2), NOTHING)}}),
    ([A], {"dense": {"a": (FLOAT, (-1,), [1.0, 2.0])}}),
    ([A], {"dense": {"a": (FLOAT, (2,), [1.0])}}),
    ([A], {"dense": {"a": (FLOAT, (2,), [[1.0, 2.0]])}}),
    ([A, B], {"sparse": {"a": FLOAT, "zz": STRING, "c": STRING}}),
    ([A, B], {"dense": {"q": (STRING, (2,), ["u", "v"]), "r": (INT64, (), 5)}}),
    ([A, B], {"dense": FIXED, "names": ["only one"]}),
    ([], {"dense": FIXED, "sparse": {"b": INT64}}),
    ([b""], {"sparse": {"b": INT64}, "dense": WITH_DEFAULT}),
    ([b"\x0a\x05ab"], {"sparse": {"b": INT64}}),
    ([A], {}),
]
RAGGED = {"a": (FLOAT, INT64), "c": (STRING, INT32), "zz": (INT64, INT64)}
SINGLE: list[tuple[Any, dict[str, Any]]] = [
    (A, {"dense": FIXED, "sparse": {"b": INT64}, "ragged": {"c": (STRING, INT64)}}),
    (A, {"dense": {"a": (FLOAT, (-1,), [0.0]), "q": (STRING, (), "none")}}),
    (SHORT, {"dense": WITH_DEFAULT, "ragged": {"zz": (INT64, INT32)}}),
    (A, {"dense": {"c": (STRING, (), NOTHING)}}),
]


def single(serialized: Any, dense: Any = None, sparse: Any = None, **options: Any) -> Case:
    dense, sparse = dense or {}, sparse or {}
    return case(
        "ParseSingleExample",
        serialized,
        [np.asarray(default, kind.numpy) for kind, _, default in dense.values()],
        num_sparse=len(sparse),
        sparse_keys=tuple(sparse),
        dense_keys=tuple(dense),
        sparse_types=tuple(sparse.values()),
        dense_shapes=tuple(shape for _, shape, _ in dense.values()),
        Tdense=tuple(kind for kind, _, _ in dense.values()),
        **options,
    )


CASES = (
    *(parse(given, version=version, **what) for version in (1, 2) for given, what in BOTH),
    parse(A, dense=FIXED, version=1),
    parse(strings([[A]]), dense=FIXED),
    *(parse(given, ragged=RAGGED) for given in ([A, B, SHORT], [], [A], [SHORT, SHORT])),
    parse([A, ODD], ragged={"a": (FLOAT, INT64)}),
    *(parse(given, **what) for given, what in SINGLE),
    *(
        parse(given, dense=dense, message=False)
        for given, dense in (
            (A, {"a": (FLOAT, (3,), NOTHING)}),
            (SHORT, FIXED),
            (ODD, FIXED),
            (b"\x0a\x05ab", FIXED),
        )
    ),
    single(A, dense=FIXED, sparse={"b": INT64, "zz": STRING}),
    single(A, dense={"a": (FLOAT, (-1, 1), [0.0]), "q": (STRING, (), "none")}),
    single(SHORT, dense=WITH_DEFAULT),
    *(
        single(given, dense=dense)
        for given, dense in (
            (A, {"a": (FLOAT, (3,), NOTHING)}),
            (SHORT, FIXED),
            (ODD, FIXED),
            (b"\x0a\x05ab", FIXED),
            (strings([A]), FIXED),
        )
    ),
    *(
        made(given, dense=dense, message=True)
        for made in (parse, single)
        for given, dense in (
            (example(a=[1.0, 2.0]), {"a": (FLOAT, (1,), NOTHING)}),
            (example(a=[1, 2]), {"a": (INT64, (1,), NOTHING)}),
            (example(a=[b"a", b"b"]), {"a": (STRING, (1,), np.empty(0, object))}),
            (example(a=[1.0]), {"a": (FLOAT, (-1, 2, 1), 0.0)}),
            (example(a=[1.0]), {"a": (INT64, (1,), NOTHING)}),
            (example(b=[1.0]), {"a": (INT64, (1,), NOTHING)}),
        )
    ),
)
