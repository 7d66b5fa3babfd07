"""A saved iterator that is within a dataset which is an element: a window."""

from __future__ import annotations

import numpy as np

import protos as pb
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from tests.conformance.cases.data.datasets import DatasetGraph
from tests.unit.runtime.kernels.saved_iterators import SavedIterator


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
    iterator = SavedIterator(g, dataset)
    assert iterator.take(1) == [0]
    saved = iterator.save()
    assert iterator.take(3) == [1, 2, 3]
    iterator.restore(saved)
    assert iterator.take(5) == [1, 2, 3, 4, 5]
    iterator.close()
