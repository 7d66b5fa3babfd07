"""The recorded conformance cases as models: TensorFlow's answer, or none."""

from __future__ import annotations

import pytest

from runtime.clusters import (
    emit_activations,
    emit_array,
    emit_comparison,
    emit_elementwise,
    emit_indexing,
    emit_padding,
    emit_reduce,
    emit_shape,
)
from tests.conformance.case import assert_matches
from tests.unit.runtime.clusters.recorded import RecordedCase, model_of, recorded_cases

FAMILIES = (
    emit_activations,
    emit_array,
    emit_comparison,
    emit_elementwise,
    emit_indexing,
    emit_padding,
    emit_reduce,
    emit_shape,
)
OPS = [row.op for family in FAMILIES for row in family.EMITTERS]
# Ops without a recorded case that a model can compute: FloorDiv is written on sizes only.
WITHOUT_CASES = {"FloorDiv", "IdentityN", "PlaceholderWithDefault", "TopK"}


@pytest.mark.parametrize("op", OPS)
def test_recorded_cases_of_an_op(op: str) -> None:
    ran = 0
    for recorded in recorded_cases():
        if op in recorded.ops:
            ran += runs_as_recorded(recorded, False) + runs_as_recorded(recorded, True)
    assert (ran > 0) is (op not in WITHOUT_CASES)


def runs_as_recorded(recorded: RecordedCase, is_batch_symbolic: bool) -> bool:
    """Check that a model of the case, if there is one, gives the recorded answer or fails.

    Returns whether there is one and it runs. If it fails, the numpy kernels run instead.
    """
    fed = model_of(recorded, is_batch_symbolic)
    if fed is None:
        return False
    try:
        got = fed.run()
    except Exception:  # the engine's errors have no common class
        return False
    where = f"{recorded.family} {recorded.case.name}"
    assert not recorded.answer.code, f"{where}: a result where {recorded.answer.message}"
    assert_matches(recorded.case, got, recorded.answer)
    return True
