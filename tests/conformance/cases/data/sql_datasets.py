"""SqlDataset: rows of a query to a database file."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

DATABASE = "tests/conformance/files/people.sqlite"
TEXT, F64, I32, I64 = DataType.STRING, DataType.DOUBLE, DataType.INT32, DataType.INT64
SMALL = (DataType.INT8, DataType.UINT8, DataType.INT16, DataType.UINT16, DataType.BOOL)
SORTED = "select {} from people order by name"


@dataclasses.dataclass(frozen=True)
class Query:
    """A query, the dtypes of its columns, and the database that it reads."""

    name: str
    query: str
    types: tuple[DataType, ...]
    driver: str = "sqlite"
    database: str = DATABASE
    op: str = "SqlDataset"
    shape: tuple[int, ...] = ()

    def case(self) -> Case:
        """The case: four calls of IteratorGetNext, the last of them past the last row."""
        graph = Graph()
        attrs: dict[str, Any] = {
            "output_types": self.types,
            "output_shapes": [self.shape] * len(self.types),
        }
        words = (
            np.array(word.encode(), object) for word in (self.driver, self.database, self.query)
        )
        rows = graph.add(self.op, *words, **attrs)[0]
        iterator = graph.add("IteratorV2", shared_name="it", container="", **attrs)[0]
        graph.add("MakeIterator", rows, iterator, name="start")
        got = graph.add("IteratorGetNext", iterator, name="next", **attrs)
        step = Step({}, tuple(name for name, _ in got))
        return Case(
            self.name, graph.graph_def, (Step({}, (), ("start",)), *[step] * 4), message=True
        )


QUERIES = (
    Query("all", SORTED.format("id, name, weight"), (I64, TEXT, F64)),
    Query("experimental", SORTED.format("id, name"), (I64, TEXT), op="ExperimentalSqlDataset"),
    *(Query(f"number_{t.tf_name}", SORTED.format("id"), (t,)) for t in (*SMALL, I32, TEXT, F64)),
    *(Query(f"text_{t.tf_name}", SORTED.format("name"), (t,)) for t in (*SMALL, I32, I64, F64)),
    *(Query(f"real_{t.tf_name}", SORTED.format("weight"), (t,)) for t in (TEXT, I32, I64)),
    *(Query(f"bytes_{t.tf_name}", SORTED.format("photo"), (t,)) for t in (TEXT, I64, F64)),
    Query("float", SORTED.format("weight"), (DataType.FLOAT,)),
    Query("shape", SORTED.format("weight"), (F64,), shape=(1,)),
    Query("too_few", SORTED.format("id"), (I64, TEXT)),
    Query("too_many", SORTED.format("id, name"), (I64,)),
    Query("no_rows", "select id from people where id = 7", (I64,)),
    Query("no_table", "select id from nobody", (I64,)),
    Query("no_query", "", (I64,)),
    Query("other_driver", SORTED.format("id"), (I64,), driver="mysql"),
)
CASES = tuple(query.case() for query in QUERIES)
