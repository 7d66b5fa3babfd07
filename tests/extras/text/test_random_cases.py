"""Random calls of TF Text's ops, a tenth of which it refuses, are answered as it answers them."""

from __future__ import annotations

import os
import pathlib
import types

import numpy as np
import pytest

from runtime.foundation.errors import OpError
from runtime.framework.dtypes import DataType
from runtime.framework.resource_manager import ResourceHandle
from runtime.framework.resources.lookup_table import HashTable
from tests.extras.text.text_cases import Arrays, Case, call, read_cases

FOLDER = pathlib.Path(__file__).parent
# what tools/record/{sequence,sentencepiece,wordpiece}_cases.py recorded; or a file of more cases,
# or of another seed
GIVEN = os.environ.get("RUNSTEP_RANDOM_TEXT_CASES")
RECORDED = [FOLDER / f"{of}_cases.json.gz" for of in ("sequence", "sentencepiece", "wordpiece")]
FILES = [pathlib.Path(GIVEN)] if GIVEN else RECORDED
# Of these, TensorFlow refuses nothing that does not make it read outside of its inputs.
NEVER_REFUSED = {
    "FastWordpieceTokenizeWithOffsets", "PhraseTokenize", "TFText>FastSentencepieceTokenize",
    "TFText>RoundRobinGenerateMasks", "WordpieceTokenizeWithOffsets",
}  # fmt: skip
CASES = [case for path in FILES for case in read_cases(path)]
OPS = sorted({case.op for case in CASES})


def inputs_of(case: Case) -> Arrays:
    """Return the inputs of a case; of WordpieceTokenizeWithOffsets, with a table for the words."""
    if case.op != "WordpieceTokenizeWithOffsets":
        return case.inputs
    texts, words = case.inputs
    table = HashTable(DataType.STRING, DataType.INT64)
    table.initialize(words, np.arange(len(words)))
    return [
        types.SimpleNamespace(),
        texts,
        ResourceHandle("", "t", table.type_name, resource=table),
    ]


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
        found = call(case.op, inputs_of(case), case.attrs)
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


@pytest.mark.parametrize("op", sorted({*OPS} - NEVER_REFUSED))
def test_both_answers_and_refusals_are_recorded(op: str) -> None:
    refused = [case.error is not None for case in CASES if case.op == op]
    assert 0 < sum(refused) < len(refused) / 2
