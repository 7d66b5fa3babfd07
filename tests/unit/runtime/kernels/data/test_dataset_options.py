"""ThreadPoolDataset: its pool must exist, and restored iterators go on."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.api import OpError
from tests.conformance.cases.data.datasets import DatasetGraph
from tests.unit.runtime.kernels.data.saved_iterators import SavedIterator


def pooled(g: DatasetGraph, handle: Any) -> Any:
    g.shapes = ((),)
    return g.data("ThreadPoolDataset", g.range(4), handle)


def pool(g: DatasetGraph) -> Any:
    return g.add("ThreadPoolHandle", num_threads=2, display_name="pool", shared_name="pool")[0]


def test_a_restored_iterator_goes_on() -> None:
    g = DatasetGraph()
    iterator = SavedIterator(g, pooled(g, pool(g)))
    assert iterator.take(2) == [0, 1]
    saved = iterator.save()
    assert iterator.take(2) == [2, 3]
    iterator.restore(saved)
    assert iterator.take(2) == [2, 3]
    iterator.close()


def test_a_dataset_made_of_its_graph_has_the_same_elements() -> None:
    g = DatasetGraph()
    graph = g.add("DatasetToGraphV2", pooled(g, pool(g)))[0]
    iterator = SavedIterator(g, g.add("DatasetFromGraph", graph)[0])
    assert iterator.take(4) == [0, 1, 2, 3]
    iterator.close()


@pytest.mark.parametrize("op", ["MutexV2", "AnonymousMemoryCache"])
def test_a_handle_of_another_resource_is_refused(op: str) -> None:
    g = DatasetGraph()
    with pytest.raises(OpError, match="using the wrong type"):
        SavedIterator(g, pooled(g, g.add(op)[0]))
