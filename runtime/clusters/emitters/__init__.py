"""The table of all emitters, by op.

Those of loops depend on the functions that the loops call, so `emitters_for` adds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runtime.clusters.emitters import (
    activations,
    array,
    comparison,
    convolution,
    elementwise,
    indexing,
    normalization,
    padding,
    pool,
    product,
    reduce,
    resize,
    shape,
)
from runtime.clusters.loops import emit_loops, tensor_lists
from runtime.clusters.op_emitter import OpEmitter
from runtime.graph.function_library import FunctionLibrary

# The tables of the op families.
TABLES: tuple[Sequence[OpEmitter], ...] = (
    activations.EMITTERS,
    array.EMITTERS,
    comparison.EMITTERS,
    convolution.EMITTERS,
    elementwise.EMITTERS,
    indexing.EMITTERS,
    normalization.EMITTERS,
    padding.EMITTERS,
    pool.EMITTERS,
    product.EMITTERS,
    reduce.EMITTERS,
    resize.EMITTERS,
    shape.EMITTERS,
    tensor_lists.EMITTERS,
)


def _by_op(tables: Sequence[Sequence[OpEmitter]]) -> Mapping[str, OpEmitter]:
    found: dict[str, OpEmitter] = {}
    for table in tables:
        for row in table:
            if row.op in found:
                raise AssertionError(f"two emitters for {row.op}")
            found[row.op] = row
    return found


EMITTERS: Mapping[str, OpEmitter] = _by_op(TABLES)


def emitters_for(library: FunctionLibrary) -> dict[str, OpEmitter]:
    """Return all emitters, with those of loops whose functions are in `library`."""
    return {**EMITTERS, **{row.op: row for row in emit_loops.loop_emitters(library)}}
