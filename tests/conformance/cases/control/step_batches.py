"""Batch, Unbatch and UnbatchGrad of one step, whose batch is closed by the timeout."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

F32 = DataType.FLOAT
ROWS = np.array([[1, 2], [3, 4]], np.float32)
OTHER = np.array([5, 7], np.float32)
DEFAULTS: dict[str, Any] = {
    "num_batch_threads": 1,
    "max_batch_size": 4,
    "batch_timeout_micros": 0,
    "grad_timeout_micros": 0,
}


def _there_and_back(name: str, fetches: tuple[str, ...], x: Any = ROWS, **attrs: Any) -> Case:
    """Batch rows, double them, unbatch them and take the gradient."""
    graph = Graph()
    given = graph.placeholder(F32, "x")
    other = graph.placeholder(F32, "other")
    first, second, index, key = graph.add("Batch", [given, other], name="batch", **DEFAULTS | attrs)
    starts, ends = np.array([0, 1], np.int32), np.array([0, 0], np.int32)
    graph.add(  # without the ids, which are random
        "StridedSlice", index, starts, ends, np.array([1, 1], np.int32),
        begin_mask=1, end_mask=3, name="bounds",
    )  # fmt: skip
    doubled = graph.add("Add", first, first)[0]
    back = graph.add("Unbatch", doubled, index, key, timeout_micros=10**7, name="back")[0]
    graph.add("UnbatchGrad", first, index, back, key, name="gradient")
    graph.add("Identity", second, name="second")
    return Case(name, graph.graph_def, (Step({"x:0": x, "other:0": OTHER[: len(x)]}, fetches),))


def _refused(name: str, x: Any, other: Any, message: bool = True, **attrs: Any) -> Case:
    graph = Graph()
    given = [graph.placeholder(F32, "x"), graph.placeholder(F32, "other")]
    graph.add("Batch", given, name="batch", **DEFAULTS | attrs)
    feeds = {"x:0": np.array(x, np.float32), "other:0": np.array(other, np.float32)}
    return Case(name, graph.graph_def, (Step(feeds, ("batch:0",)),), message=message)


def _unbatched(name: str, index: Any, key: Any = 7, message: bool = False) -> Case:
    graph = Graph()
    batched = graph.placeholder(F32, "batched")
    keys = [graph.placeholder(DataType.INT64, each) for each in ("index", "id")]
    graph.add("Unbatch", batched, *keys, timeout_micros=1000, name="back")
    feeds = {
        "batched:0": ROWS,
        "index:0": np.array(index, np.int64),
        "id:0": np.array(key, np.int64),
    }
    return Case(name, graph.graph_def, (Step(feeds, ("back:0",)),), message=message)


CASES = (
    *(
        _there_and_back(name, (output,))
        for name, output in (
            ("batched", "batch:0"),
            ("second", "second:0"),
            ("bounds", "bounds:0"),
            ("back", "back:0"),
            ("gradient", "gradient:0"),
        )
    ),
    _there_and_back("padded", ("batch:0", "second:0", "bounds:0"), allowed_batch_sizes=[3, 4]),
    _there_and_back("padded_and_back", ("back:0",), allowed_batch_sizes=[3, 4]),
    _there_and_back("a_full_batch", ("back:0",), max_batch_size=2, batch_timeout_micros=10**9),
    _there_and_back("no_bound", ("back:0",), max_batch_size=-1, batch_timeout_micros=1000),
    *(
        _there_and_back(f"no_rows_{name}", (output,), x=ROWS[:0])
        for name, output in (
            ("batched", "batch:0"),
            ("second", "second:0"),
            ("index", "batch:2"),
            ("id", "batch:3"),
        )
    ),
    _refused("different_rows", ROWS, [1], message=False),
    _refused("a_scalar", 1, [1], message=False),
    _refused("too_many_rows", [[1]] * 5, [1] * 5),
    _refused("a_timeout_below_0", ROWS, OTHER, batch_timeout_micros=-1),
    _refused("sizes_that_fall", ROWS, OTHER, allowed_batch_sizes=[4, 3]),
    _refused("a_last_size_that_is_not_the_largest", ROWS, OTHER, allowed_batch_sizes=[3]),
    _unbatched("rows_of_two_steps", [[7, 0, 1], [9, 1, 2]]),
    _unbatched("rows_of_nobody", [[8, 0, 1], [9, 1, 2]], message=True),
    _unbatched("rows_wherever_they_start", [[9, 5, 6], [7, 0, 1]]),
    _unbatched("rows_of_one_step_that_starts_late", [[7, 1, 2]]),
    _unbatched("more_steps_than_rows", [[7, 0, 1]] * 3, message=True),
    _unbatched("an_index_without_columns", np.zeros((0, 0)), message=True),
    _unbatched("an_id_that_is_no_scalar", [[7, 0, 2]], [7]),
)
