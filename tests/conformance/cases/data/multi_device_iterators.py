"""Iterators whose elements are distributed to two devices in turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Step
from tests.conformance.cases.data.datasets import DatasetGraph

I64 = DataType.INT64
_DEVICES = ("/device:CPU:0", "/device:CPU:1")


def _case(name: str, order: str, by_string: bool = False) -> Case:
    """Return a case of five elements that two devices request in an order such as 0011."""
    g = DatasetGraph()
    attrs: dict[str, Any] = {"output_types": g.types, "output_shapes": ((),)}
    iterator = g.add(
        "MultiDeviceIterator", name="it", devices=_DEVICES, shared_name="it", container="", **attrs
    )[0]
    incarnation = g.placeholder(I64, "incarnation", ())
    g.add("MultiDeviceIteratorInit", g.range(5), iterator, np.int64(10), name="start")
    if by_string:
        text = g.add("MultiDeviceIteratorToStringHandle", iterator)[0]
        iterator = g.add("MultiDeviceIteratorFromStringHandle", text, **attrs)[0]
    for shard in (0, 1):
        g.add(
            "MultiDeviceIteratorGetNextFromShard", iterator, np.int32(shard), incarnation,
            name=f"next_{shard}", **attrs,
        )  # fmt: skip
    first = {"incarnation:0": np.array(1)}
    steps = [Step({}, ("start:0",)), *(Step(first, (f"next_{shard}:0",)) for shard in order)]
    return Case(name, g.graph_def, tuple(steps))


CASES = (
    _case("in_turn", "010101"),
    _case("one_ahead", "0011"),
    _case("by_string", "01", by_string=True),
)
