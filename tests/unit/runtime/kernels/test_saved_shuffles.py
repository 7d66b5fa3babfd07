"""A saved iterator over a shuffle: the passes after the one that was saved."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.cases.data.datasets import DatasetGraph
from tests.unit.runtime.kernels.saved_iterators import SavedIterator


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
    iterator = SavedIterator(g, dataset)
    iterator.take(taken)
    saved = iterator.save()
    rest = iterator.take(15 - taken)
    iterator.restore(saved)
    assert iterator.take(15 - taken) == rest
    iterator.close()
