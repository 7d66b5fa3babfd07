"""Datasets of parsed examples: restored iterators, graphs of datasets, elements of other types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runtime.api import OpError
from runtime.framework.dtypes import DataType
from tests.conformance.cases.data.datasets import DatasetGraph
from tests.conformance.cases.io.example_parsing import example
from tests.unit.runtime.kernels.data.saved_iterators import SavedIterator

I64, STRING = DataType.INT64, DataType.STRING


def parsed(g: DatasetGraph, values: np.ndarray, kind: DataType = STRING) -> Any:
    """Return a dataset of the integer `a` of each message."""
    source = g.data(
        "TensorSliceDataset", [values], Toutput_types=(kind,), output_types=(),
        output_shapes=((),),
    )  # fmt: skip
    g.shapes = ((1,),)
    return g.data(
        "ParseExampleDatasetV2", source, g.long(2), [np.zeros(0, np.int64)], sparse_keys=(),
        dense_keys=("a",), sparse_types=(), Tdense=(I64,), dense_shapes=((),),
    )  # fmt: skip


def messages(count: int) -> np.ndarray:
    found = np.empty(count, object)
    found[:] = [example(a=[number]) for number in range(count)]
    return found


def test_a_restored_iterator_goes_on() -> None:
    g = DatasetGraph()
    iterator = SavedIterator(g, parsed(g, messages(4)))
    assert iterator.take(2) == [0, 1]
    saved = iterator.save()
    assert iterator.take(2) == [2, 3]
    iterator.restore(saved)
    assert iterator.take(2) == [2, 3]
    iterator.close()


def test_a_dataset_made_of_its_graph_has_the_same_elements() -> None:
    g = DatasetGraph()
    graph = g.add("DatasetToGraphV2", parsed(g, messages(3)))[0]
    iterator = SavedIterator(g, g.add("DatasetFromGraph", graph)[0])
    assert iterator.take(3) == [0, 1, 2]
    iterator.close()


def test_elements_that_are_no_strings_are_refused() -> None:
    g = DatasetGraph()
    iterator = SavedIterator(g, parsed(g, np.arange(2), I64))
    with pytest.raises(OpError, match="Expected an element of strings"):
        iterator.take(1)
    iterator.close()


def test_after_a_bad_message_the_next_element_is_parsed() -> None:
    values = messages(3)
    values[1] = b"no message"
    g = DatasetGraph()
    iterator = SavedIterator(g, parsed(g, values))
    assert iterator.take(1) == [0]
    with pytest.raises(OpError, match="Could not parse example input"):
        iterator.take(1)
    assert iterator.take(1) == [2]
    iterator.close()
