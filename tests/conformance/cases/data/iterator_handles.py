"""Anonymous, multi-device and old iterators, and iterators that are saved and restored."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Step
from tests.conformance.cases.data.datasets import DatasetGraph

I64 = DataType.INT64
ELEMENTS: dict[str, Any] = {"output_types": (I64,), "output_shapes": ((),)}
_DEVICES = ("/device:CPU:0", "/device:CPU:1")


def _in_one_step(op: str, deleted: bool = False) -> Case:
    """Make an iterator, start it and take two of its elements in one step."""
    g = DatasetGraph()
    made = g.add(op, **ELEMENTS)
    g.add("MakeIterator", g.range(9, 4), made[0], name="start")
    g.add("IteratorGetNext", made[0], name="first", control=("start",), **ELEMENTS)
    g.add("IteratorGetNext", made[0], name="second", control=("first",), **ELEMENTS)
    if deleted:
        g.add("DeleteIterator", *made, name="delete", control=("second",))
    step = Step({}, ("first:0", "second:0"), ("delete",) if deleted else ())
    return Case(op, g.graph_def, (step, step))


def _several_devices(op: str, deleted: bool = False) -> Case:
    """A multi-device iterator that gives an element to each of two devices."""
    g = DatasetGraph()
    made = g.add(op, devices=_DEVICES, **ELEMENTS)
    begun = g.add("MultiDeviceIteratorInit", g.range(9, 4), made[0], np.int64(2))[0]
    for shard in (0, 1):
        g.add(
            "MultiDeviceIteratorGetNextFromShard", made[0], np.int32(shard), begun,
            name=f"next_{shard}", **ELEMENTS,
        )  # fmt: skip
    if deleted:
        control = ("next_0", "next_1")
        g.add("DeleteMultiDeviceIterator", made[0], [], made[1], name="delete", control=control)
    step = Step({}, ("next_0:0", "next_1:0"), ("delete",) if deleted else ())
    return Case(op, g.graph_def, (step,))


def _iterator(g: DatasetGraph, name: str, op: str = "IteratorV2") -> Any:
    return g.add(op, shared_name=name, container="", **ELEMENTS)[0]


def _next(g: DatasetGraph, iterator: Any, name: str = "next") -> Step:
    g.add("IteratorGetNext", iterator, name=name, **ELEMENTS)
    return Step({}, (f"{name}:0",))


def _old_iterator() -> Case:
    """Version 1 of Iterator, read through its string handle."""
    g = DatasetGraph()
    iterator = _iterator(g, "it", "Iterator")
    g.add("MakeIterator", g.range(2), iterator, name="start")
    text = g.add("IteratorToStringHandle", iterator)[0]
    again = g.add("IteratorFromStringHandle", text)[0]
    take = _next(g, again)
    return Case("by_string", g.graph_def, (take, Step({}, (), ("start",)), take, take, take))


def _saved() -> Case:
    """The state of one iterator is restored into another, which continues from there."""
    g = DatasetGraph()
    taken = []
    for name in ("first", "second"):
        iterator = _iterator(g, name)
        g.add("MakeIterator", g.data("TakeDataset", g.range(9), g.long(4)), iterator, name=name)
        taken.append(_next(g, iterator, f"next_{name}"))
        if name == "first":
            saved = g.add("SerializeIterator", iterator)[0]
    g.add("DeserializeIterator", iterator, saved, name="restore")
    one, other = taken
    steps = (
        Step({}, (), ("first", "second")), one, one, other, Step({}, (), ("restore",)), other, one,
        other, other,
    )  # fmt: skip
    return Case("saved", g.graph_def, steps)


def _device(op: str) -> Case:
    g = DatasetGraph()
    g.add(op, _iterator(g, "it"), name="device")
    return Case(op, g.graph_def, (Step({}, ("device:0",)),))


CASES = (
    _in_one_step("AnonymousIterator"),
    _in_one_step("AnonymousIteratorV2", deleted=True),
    _in_one_step("AnonymousIteratorV3"),
    _several_devices("AnonymousMultiDeviceIterator", deleted=True),
    _several_devices("AnonymousMultiDeviceIteratorV3"),
    _old_iterator(),
    _saved(),
    _device("IteratorGetDevice"),
    _device("ExperimentalIteratorGetDevice"),
)
