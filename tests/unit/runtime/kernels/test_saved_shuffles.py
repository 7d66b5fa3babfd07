"""A saved iterator over a shuffle: the passes after the one that was saved."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.api import SessionOptions, new_session
from runtime.framework.dtypes import DataType
from tests.conformance.cases.datasets import DatasetGraph


@pytest.mark.parametrize("taken", [0, 2, 6, 8])  # of five elements a pass
@pytest.mark.parametrize("buffer_size", [1, 3, 10])
def test_later_passes_are_shuffled_the_same_again(taken: int, buffer_size: int) -> None:
    g = DatasetGraph()
    g.shapes = ((),)
    seeds = [g.long(0), g.long(0)]  # random ones
    generator = g.add("AnonymousSeedGenerator", *seeds, np.bool_(True))[0]
    size = g.long(buffer_size)
    shuffled = g.data(
        "ShuffleDatasetV3", g.range(5), size, *seeds, generator, reshuffle_each_iteration=True
    )
    dataset = g.data("RepeatDataset", shuffled, g.long(3))
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
    take(taken)
    saved = session.run({}, ("saved:0",))[0]
    rest = take(15 - taken)
    session.run({"text:0": saved}, (), ("restore",))
    assert take(15 - taken) == rest
    session.close()
