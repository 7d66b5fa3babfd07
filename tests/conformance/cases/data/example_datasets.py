"""Datasets that parse batches of tf.Example messages: dense, sparse and ragged features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Step
from tests.conformance.cases.data.datasets import DatasetGraph
from tests.conformance.cases.io.example_parsing import NOTHING, ODD, SHORT, A, B, example

F32, I64, I32, STRING, VARIANT = (
    DataType.FLOAT,
    DataType.INT64,
    DataType.INT32,
    DataType.STRING,
    DataType.VARIANT,
)
LONG = example(a=[5.0, 6.0], b=[1, 2, 3, 4], c=[b"x", b"", b"longer"])
_NO_TEXT = np.empty(0, object)
_FIXED = {"a": (F32, (2,), NOTHING)}


def _messages(*batches: Sequence[bytes]) -> np.ndarray:
    flat = np.empty(len(batches) * len(batches[0]), object)
    flat[:] = [each for batch in batches for each in batch]
    return flat.reshape(len(batches), len(batches[0]))


def _case(
    name: str,
    messages: np.ndarray,
    dense: Mapping[str, tuple[DataType, Any, Any]] | None = None,
    sparse: Mapping[str, DataType] | None = None,
    ragged: Mapping[str, tuple[DataType, DataType]] | None = None,
    op: str = "ParseExampleDatasetV2",
    calls: int = 2,
    types: Sequence[DataType] | None = None,
    shapes: Sequence[Any] | None = None,
    count: int = 3,
    **attrs: Any,
) -> Case:
    """Parse the rows of `messages`; dense features are {key: (type, shape, default)}."""
    dense, sparse, ragged = dense or {}, sparse or {}, ragged or {}
    kinds = {key: kind for key, (kind, _, _) in dense.items()}
    keys = sorted({*dense, *sparse, *ragged})
    g = DatasetGraph()
    g.types, g.shapes = (STRING,), (None,)
    source = g.data(
        "TensorSliceDataset", [messages], Toutput_types=g.types, output_types=(),
        output_shapes=(messages.shape[1:],),
    )  # fmt: skip
    g.types = tuple(types or (kinds.get(key, VARIANT) for key in keys))
    g.shapes = tuple(shapes or (None for _ in keys))
    if op != "ExperimentalParseExampleDataset":
        attrs |= {
            "ragged_keys": tuple(ragged),
            "ragged_value_types": tuple(kind for kind, _ in ragged.values()),
            "ragged_split_types": tuple(split for _, split in ragged.values()),
        }
    defaults = [
        g.add("PlaceholderWithDefault", np.asarray(default, kind.numpy), shape=None)[0]
        for kind, _, default in dense.values()
    ]
    dataset = g.data(
        op, source, g.long(calls), defaults, sparse_keys=tuple(sparse), dense_keys=tuple(dense),
        sparse_types=tuple(sparse.values()), Tdense=tuple(kinds.values()),
        dense_shapes=tuple(shape for _, shape, _ in dense.values()), **attrs,
    )  # fmt: skip
    components = {"output_types": g.types, "output_shapes": g.shapes}
    iterator = g.add("IteratorV2", shared_name="it", container="", **components)[0]
    g.add("MakeIterator", dataset, iterator, name="start")
    outputs = g.add("IteratorGetNext", iterator, name="next", **components)
    fetches: list[str] = []
    for key, output in zip(keys, outputs, strict=False):
        if key in sparse and output[1] is VARIANT:
            parts = g.add("DeserializeSparse", output, dtype=sparse[key], Tserialized=VARIANT)
        elif key in ragged and output[1] is VARIANT:
            kind, split = ragged[key]
            parts = g.add(
                "RaggedTensorFromVariant", output, Tvalues=kind, Tsplits=split,
                input_ragged_rank=1, output_ragged_rank=1,
            )  # fmt: skip
        else:
            parts = [output]
        fetches += [each for each, _ in parts]
    g.add("DatasetCardinality", dataset, name="cardinality")
    steps = (
        Step({}, (), ("start",)), Step({}, ("cardinality:0",)),
        *[Step({}, tuple(fetches))] * count,
    )  # fmt: skip
    return Case(name, g.graph_def, steps, message=True)


_TWO = _messages((A, LONG), (B, A))
_ALL = {"b": I64, "c": STRING}
_FAULTS: dict[str, tuple[np.ndarray, dict[str, Any]]] = {
    "missing": (_messages((A, SHORT), (A, B)), {"dense": _FIXED}),
    "other_type": (_messages((A, ODD), (A, B)), {"dense": _FIXED}),
    "other_sparse_type": (_messages((A, B)), {"sparse": {"c": F32}}),
    "other_shape": (_messages((A, B)), {"dense": {"a": (F32, (3,), NOTHING)}}),
    "garbage": (_messages((A, b"garbage"), (A, B)), {"dense": _FIXED}),
    "declared_type": (_TWO, {"dense": _FIXED, "types": (I64,)}),
    "declared_shape": (_TWO, {"dense": _FIXED, "shapes": ((3, 2),)}),
    "same_key": (_TWO, {"dense": _FIXED, "sparse": {"a": F32}}),
    "no_calls": (_TWO, {"dense": _FIXED, "calls": 0}),
    "default_shape": (_TWO, {"dense": {"a": (F32, (2,), [1.0, 2.0, 3.0])}}),
    "padding": (_TWO, {"dense": {"a": (F32, (-1,), [1.0, 2.0])}}),
    "inner_shape": (_TWO, {"dense": {"a": (F32, (2, -1), NOTHING)}}),
}

CASES = (
    *(
        _case(f"{op}_{len(dense)}", _TWO, dense, {"b": I64}, op=op)
        for op in (
            "ExperimentalParseExampleDataset", "ParseExampleDataset", "ParseExampleDatasetV2",
        )
        for dense in ({}, _FIXED, {"c": (STRING, (-1,), [b"-"]), "a": (F32, (1, 2), [[1.0, 2.0]])})
    ),
    _case("sparse_of_all_types", _TWO, sparse={"c": STRING, "b": I64, "a": F32}),
    _case("ragged", _TWO, ragged={"c": (STRING, I64), "b": (I64, I32), "a": (F32, I64)}),
    _case("ragged_1", _TWO, _FIXED, {"none": F32}, {"b": (I64, I64)}, op="ParseExampleDataset"),
    _case("of_every_kind", _TWO, _FIXED, {"c": STRING}, {"b": (I64, I64)}, calls=-1),
    _case("defaults", _messages((SHORT, A)), {"a": (F32, (2,), [9.0, 8.0])}),
    _case("padded", _TWO, {"b": (I64, (-1,), [-1]), "c": (STRING, (-1,), [b"?"])}),
    _case("no_messages", _messages((), ()), _FIXED, _ALL, {"r": (I64, I64)}),
    _case("declared_exactly", _TWO, _FIXED, {"b": I64}, shapes=((2, 2), (3,))),
    _case("in_any_order", _TWO[:1], _FIXED, deterministic="true"),
    *(_case(name, messages, **options) for name, (messages, options) in _FAULTS.items()),
)  # fmt: skip
