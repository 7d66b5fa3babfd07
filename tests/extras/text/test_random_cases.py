"""Random calls of TF Text's ops, a tenth of which it refuses, are answered as it answers them."""

from __future__ import annotations

import os
import pathlib

import numpy as np
import pytest

from runtime.foundation.errors import OpError
from tests.extras.text.text_cases import Arrays, Case, call, read_cases

FOLDER = pathlib.Path(__file__).parent
# what tools/record_sequence_cases.py recorded; or a file of more cases, or of another seed
GIVEN = os.environ.get("RUNSTEP_RANDOM_TEXT_CASES")
FILES = [pathlib.Path(GIVEN)] if GIVEN else [FOLDER / "sequence_cases.json.gz"]
CASES = [case for path in FILES for case in read_cases(path)]
OPS = sorted({case.op for case in CASES})


def different(found: Arrays, case: Case) -> bool:
    return len(found) != len(case.outputs) or any(
        got.dtype != want.dtype
        or got.shape != want.shape
        or not np.array_equal(got, want, equal_nan=want.dtype.kind == "f")
        for got, want in zip(found, case.outputs, strict=True)
    )


def fault(case: Case) -> str:
    """Return what is wrong with the answer to a case; nothing if it is TensorFlow's."""
    try:
        found = call(case.op, case.inputs, case.attrs)
    except OpError as error:
        return "" if error.code == case.error else f"{error!r} instead of {case.error}"
    if case.error is not None:
        return f"{found} instead of error {case.error}"
    return f"{found} instead of {case.outputs}" if different(found, case) else ""


@pytest.mark.parametrize("op", OPS)
def test_answers_are_those_of_tf_text(op: str) -> None:
    cases = [case for case in CASES if case.op == op]
    faults = [(fault(case), case) for case in cases]
    wrong = [each for each in faults if each[0]]
    assert not wrong, f"{len(wrong)} of {len(cases)}, such as {wrong[:3]}"


@pytest.mark.parametrize("op", OPS)
def test_both_answers_and_refusals_are_recorded(op: str) -> None:
    refused = [case.error is not None for case in CASES if case.op == op]
    assert 0 < sum(refused) < len(refused) / 2
