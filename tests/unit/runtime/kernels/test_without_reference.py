"""Ops that TensorFlow answers with an error, a crash or a wrong number whatever they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runtime.api import OpError, SessionOptions, new_session
from runtime.foundation.errors import Code
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from tests.conformance.case import Graph
from tests.conformance.cases.data.dataset_snapshots import identity
from tests.conformance.cases.data.datasets import DatasetGraph


def elements_after_delete(g: DatasetGraph, dataset: Any, op: str, made: Any, count: int) -> Any:
    """The elements of a dataset whose generator or cache is deleted once the pass has begun."""
    attrs: dict[str, Any] = {"output_types": g.types, "output_shapes": g.shapes}
    iterator = g.add("IteratorV2", shared_name="it", container="", **attrs)[0]
    g.add("MakeIterator", dataset, iterator, name="start")
    g.add(op, *made, name="delete", control=("start",))
    g.add("IteratorGetNext", iterator, name="next", **attrs)
    session = new_session(SessionOptions())
    session.create(g.graph_def)
    session.run({}, (), ("start", "delete"))
    elements = [int(session.run({}, ("next:0",))[0]) for _ in range(count)]
    session.close()
    return elements


def test_a_random_seed_generator_lives_as_long_as_its_dataset() -> None:
    g = DatasetGraph()
    made = g.add("AnonymousRandomSeedGenerator", g.long(3), g.long(4))
    shuffled = g.data("ShuffleDatasetV2", g.range(5), g.long(3), made[0])
    dataset = g.data("RepeatDataset", shuffled, g.long(2))
    elements = elements_after_delete(g, dataset, "DeleteRandomSeedGenerator", made, 10)
    assert sorted(elements[:5]) == sorted(elements[5:]) == list(range(5))


def test_a_seed_generator_lives_as_long_as_its_dataset() -> None:
    g = DatasetGraph()
    made = g.add("AnonymousSeedGenerator", g.long(3), g.long(4), np.bool_(True))
    dataset = g.data("ShuffleDatasetV2", g.range(5), g.long(3), made[0])
    elements = elements_after_delete(g, dataset, "DeleteSeedGenerator", made, 5)
    assert sorted(elements) == list(range(5))


def test_a_cache_lives_as_long_as_its_dataset() -> None:
    g = DatasetGraph()
    made = g.add("AnonymousMemoryCache")
    cached = g.data("CacheDatasetV2", g.range(2), b"", made[0])
    dataset = g.data("RepeatDataset", cached, g.long(2))
    assert elements_after_delete(g, dataset, "DeleteMemoryCache", made, 4) == [0, 1, 0, 1]


def test_a_nested_reader_is_a_dataset_of_datasets() -> None:
    g = DatasetGraph()
    g.graph_def.library.function.append(identity("itself", "y", DataType.VARIANT))
    shards = [g.range(3), g.range(9, 7)]
    nested = g.data("SnapshotNestedDatasetReader", shards, output_types=(DataType.VARIANT,))
    joined = g.data("FlatMapDataset", nested, [], f=NameAttrList("itself"))
    g.add("DatasetCardinality", nested, name="count")
    add = g.function("add", "AddV2", 2, DataType.INT64)
    attrs: dict[str, Any] = {"output_types": g.types, "output_shapes": ((),)}
    g.add("ReduceDataset", joined, [g.long(100)], [], f=add, name="sum", **attrs)
    session = new_session(SessionOptions())
    session.create(g.graph_def)
    assert session.run({}, ("count:0", "sum:0")) == [2, 118]
    session.close()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_an_integer_rounded_is_itself(dtype: type) -> None:
    graph = Graph()
    graph.add("Round", np.array([-3, 0, 7], dtype), name="result")
    session = new_session(SessionOptions())
    session.create(graph.graph_def)
    (rounded,) = session.run({}, ("result:0",))
    assert rounded.dtype == dtype
    np.testing.assert_array_equal(rounded, [-3, 0, 7])
    session.close()


def test_the_first_reader_of_records_lacks_an_attribute_that_it_needs() -> None:
    graph = Graph()
    graph.graph_def.versions.producer = 25  # later graphs may not have it
    graph.add("FixedLengthRecordReader", record_bytes=5, name="reader")
    session = new_session(SessionOptions())
    session.create(graph.graph_def)
    with pytest.raises(OpError, match="No attr named 'encoding' in NodeDef") as caught:
        session.run({}, (), ("reader",))
    assert caught.value.code == Code.NOT_FOUND
    session.close()
