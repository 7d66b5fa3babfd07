"""Pipelines that TensorFlow rewrites: shuffles that are repeated."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from runtime.framework.attr_value import text
from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Step
from tests.conformance.cases.datasets import Build, DatasetGraph, iterated

I64, VARIANT = DataType.INT64, DataType.VARIANT
# optimization_options: apply_default_optimizations (1), shuffle_and_repeat_fusion (17)
_OPTIONS = {
    "none": b"",
    "default": b"\x1a\x02\x08\x01",
    "no_default": b"\x1a\x02\x08\x00",
    "fused": b"\x1a\x03\x88\x01\x01",
    "not_fused": b"\x1a\x03\x88\x01\x00",
    "fused_alone": b"\x1a\x05\x08\x00\x88\x01\x01",
    "unreadable": b"\x1a\x09",
}


def _shuffled(g: DatasetGraph, op: str = "ShuffleDataset") -> Any:
    if op == "ShuffleDatasetV2":
        generator = g.add("AnonymousSeedGenerator", g.long(1), g.long(2), np.bool_(True))[0]
        return g.data(op, g.range(6), g.long(3), generator)
    dummy = [g.add("DummySeedGenerator")[0]] if op.endswith("V3") else []
    return g.data(
        op, g.range(6), *map(g.long, (3, 1, 2)), *dummy, reshuffle_each_iteration=True
    )  # fmt: skip


def _repeated(count: int, op: str = "ShuffleDataset", options: bytes = b"") -> Build:
    def build(g: DatasetGraph) -> Any:
        dataset = g.data("RepeatDataset", _shuffled(g, op), g.long(count))
        taken = g.data("TakeDataset", dataset, g.long(8))
        return g.data("OptionsDataset", taken, serialized_options=text(options))

    return build


def _beside(g: DatasetGraph) -> Any:
    """A repeated shuffle that is one of two inputs."""
    return g.data("ConcatenateDataset", g.range(2), _repeated(0)(g))


def _apart(g: DatasetGraph) -> Any:
    """Something in between: nothing is made one."""
    return g.data("RepeatDataset", g.data("PrefetchDataset", _shuffled(g), g.long(1)), g.long(0))


def _asked_otherwise() -> Case:
    """What does not begin an iterator is not rewritten, a reduction is."""
    g = DatasetGraph()
    dataset = g.data("RepeatDataset", _shuffled(g), g.long(-2))
    taken = g.data("TakeDataset", dataset, g.long(1))
    attrs: dict[str, Any] = {"output_types": (I64,), "output_shapes": ((),)}
    g.add("DatasetToSingleElement", taken, name="single", **attrs)
    g.add("DatasetCardinality", taken, name="count")
    add = g.function("add", "AddV2", 2, I64)
    g.add("ReduceDataset", taken, [g.long(100)], [], f=add, name="sum", **attrs)
    steps = tuple(Step({}, (f"{name}:0",)) for name in ("single", "count", "sum"))
    return Case("repeated_shuffle_asked_otherwise", g.graph_def, steps, message=True)


REPEATED: dict[str, Build] = {
    **{f"{op}_{count}": _repeated(count, op)
       for op in ("ShuffleDataset", "ShuffleDatasetV2", "ShuffleDatasetV3")
       for count in (-2, 0)},
    **{f"{count}": _repeated(count) for count in (-1, 2)},
    **{f"options_{name}": _repeated(0, options=options) for name, options in _OPTIONS.items()},
    "beside": _beside,
    "apart": _apart,
}  # fmt: skip
# TensorFlow names the node that its rewrite makes, so words are not compared.
CASES = (
    *(dataclasses.replace(iterated(f"repeated_shuffle_{name}", build, 2), message=False)
      for name, build in REPEATED.items()),
    dataclasses.replace(_asked_otherwise(), message=False),
)  # fmt: skip
