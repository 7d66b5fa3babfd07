"""Datasets on thread pools of their own."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import Case
from tests.conformance.cases.data.datasets import DatasetGraph, iterated


def _pooled(name: str, prefix: str = "", threads: int = 2, **attrs: Any) -> Case:
    def build(g: DatasetGraph) -> Any:
        pool = g.add(
            f"{prefix}ThreadPoolHandle", num_threads=threads, display_name="pool", **attrs
        )[0]
        return g.data(f"{prefix}ThreadPoolDataset", g.range(3), pool)

    return iterated(name, build, 4)


CASES = (
    *(_pooled(f"{prefix}pool", prefix) for prefix in ("", "Experimental")),
    _pooled("shared", shared_name="pools", container="c"),
    _pooled("chosen", threads=0, max_intra_op_parallelism=-1),
    _pooled("negative", threads=-1),
    _pooled("many", threads=65536),
)
