"""The table of all emitters, by op.

Those of loops depend on the functions that the loops call, so `all_emitters` adds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runtime.clusters import (
    emit_activations,
    emit_array,
    emit_comparison,
    emit_convolution,
    emit_elementwise,
    emit_indexing,
    emit_normalization,
    emit_padding,
    emit_pool,
    emit_product,
    emit_reduce,
    emit_resize,
    emit_shape,
)
from runtime.clusters.loops import emit_loops, tensor_lists
from runtime.clusters.op_emitter import OpEmitter
from runtime.graph.function_library import FunctionLibrary

# The tables of the op families.
TABLES: tuple[Sequence[OpEmitter], ...] = (
    emit_activations.EMITTERS,
    emit_array.EMITTERS,
    emit_comparison.EMITTERS,
    emit_convolution.EMITTERS,
    emit_elementwise.EMITTERS,
    emit_indexing.EMITTERS,
    emit_normalization.EMITTERS,
    emit_padding.EMITTERS,
    emit_pool.EMITTERS,
    emit_product.EMITTERS,
    emit_reduce.EMITTERS,
    emit_resize.EMITTERS,
    emit_shape.EMITTERS,
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


def all_emitters(library: FunctionLibrary) -> dict[str, OpEmitter]:
    """Return all emitters, with those of loops whose functions are in `library`."""
    return {**EMITTERS, **{row.op: row for row in emit_loops.loop_emitters(library)}}
