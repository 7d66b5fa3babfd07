"""Ops of TF Text that need no extra answer as TF Text does, token for token."""

from __future__ import annotations

import os
import pathlib

import numpy as np
import pytest

from runtime.foundation.errors import OpError
from tests.extras.text.text_cases import RECORDED, Arrays, Case, call, read_cases

# a file that tools/record/text_cases.py wrote with more texts, or another seed
CASES = read_cases(pathlib.Path(os.environ.get("RUNSTEP_TEXT_CASES", RECORDED)))


def answer(case: Case) -> Arrays:
    found = call(case.op, case.inputs, case.attrs)
    if case.op != "NormalizeUTF8WithOffsetsMap":
        return found
    texts, maps = found
    lengths = [len(each) + 2 for each in texts.tolist()]
    offsets = np.concatenate([np.arange(each) for each in lengths])
    splits = np.concatenate([[0], np.cumsum(lengths)])
    return [texts, *call("FindSourceOffsets", [maps, offsets, splits], {})]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.op}-{case.attrs}")
def test_answers_are_those_of_tf_text(case: Case) -> None:
    if case.error is not None:
        with pytest.raises(OpError) as caught:
            answer(case)
        assert caught.value.code == case.error
        return
    found = answer(case)
    assert len(found) == len(case.outputs)
    for got, want in zip(found, case.outputs, strict=True):
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        different = np.flatnonzero(got.ravel() != want.ravel())
        assert not len(different), (
            different[:5],
            got.ravel()[different[:5]],
            want.ravel()[different[:5]],
        )
