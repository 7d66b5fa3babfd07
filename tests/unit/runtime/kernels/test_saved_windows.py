"""A saved iterator that is within a dataset which is an element: a window."""

from __future__ import annotations

import numpy as np

import protos as pb
from runtime.api import SessionOptions, new_session
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from tests.conformance.cases.datasets import DatasetGraph


def test_the_rest_of_a_window_comes_after_a_checkpoint() -> None:
    g = DatasetGraph()
    g.shapes = ((),)
    sizes = [g.long(each) for each in (3, 3, 1)]
    windows = g.data(
        "WindowDataset", g.range(6), *sizes, np.bool_(True), output_types=(DataType.VARIANT,)
    )
    itself = pb.FunctionDef(ret={"y": "x"})
    itself.signature.name = "itself"
    itself.signature.input_arg.add(name="x", type=pb.DT_VARIANT)
    itself.signature.output_arg.add(name="y", type=pb.DT_VARIANT)
    g.graph_def.library.function.append(itself)
    dataset = g.data("FlatMapDataset", windows, [], f=NameAttrList("itself"))
    attrs = {"output_types": g.types, "output_shapes": g.shapes}
    iterator = g.add("IteratorV2", shared_name="it", container="", **attrs)[0]
    g.add("MakeIterator", dataset, iterator, name="start")
    g.add("IteratorGetNext", iterator, name="next", **attrs)
    g.add("SerializeTensor", g.add("SerializeIterator", iterator)[0], name="saved")
    text = g.placeholder(DataType.STRING, "text", ())
    parsed = g.add("ParseTensor", text, out_type=DataType.VARIANT)[0]
    g.add("DeserializeIterator", iterator, parsed, name="restore")
    session = new_session(SessionOptions())
    session.create(g.graph_def)

    def take(count: int) -> list[int]:
        return [int(session.run({}, ("next:0",))[0]) for _ in range(count)]

    session.run({}, (), ("start",))
    assert take(1) == [0]
    saved = session.run({}, ("saved:0",))[0]
    assert take(3) == [1, 2, 3]
    session.run({"text:0": saved}, (), ("restore",))
    assert take(5) == [1, 2, 3, 4, 5]
    session.close()
