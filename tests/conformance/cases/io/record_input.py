"""RecordInput of one file with one record, which leaves only one order, and its errors."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import Case, Graph, Step

FILES = "tests/conformance/files/"


def _case(name: str, reads: int = 1, **attrs: Any) -> Case:
    graph = Graph()
    graph.add("RecordInput", name="result", **attrs)
    return Case(name, graph.graph_def, (Step({}, ("result:0",)),) * reads)


CASES = (
    _case("one", 3, file_pattern=f"{FILES}one_record.tfrecord", batch_size=2),
    _case("none", file_pattern=f"{FILES}no_such_file.*", batch_size=1),
    _case("no_batch", file_pattern=f"{FILES}one_record.tfrecord", batch_size=-1),
    _case("compression", file_pattern=f"{FILES}one_record.tfrecord", compression_type="nan"),
)
