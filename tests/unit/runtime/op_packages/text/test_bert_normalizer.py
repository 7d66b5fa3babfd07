"""FastBertNormalize with damaged models; tests/extras/text has those that are not damaged."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.foundation.errors import FailedPreconditionError, InvalidArgumentError
from runtime.framework.string_tensor import string_tensor
from runtime.op_packages.text.bert_normalizer import fast_bert_normalize
from tests.extras.text.text_cases import RECORDED, read_cases

MODEL = next(case for case in read_cases(RECORDED) if case.op == "FastBertNormalize").inputs[1]


def normalized(model: np.ndarray, *items: bytes) -> list[bytes]:
    found = fast_bert_normalize(string_tensor(items), model, get_offsets=False)[0]
    result: list[bytes] = found.tolist()
    return result


def test_a_model_replaces_characters() -> None:
    assert normalized(MODEL, "Été ﬁ\0".encode(), b"\xc3A") == [b"ete fi ", b"\xc3a"]


def test_offsets_are_those_of_the_replaced_characters() -> None:
    found, offsets, splits = fast_bert_normalize(
        string_tensor(["ÉÀb".encode(), b""]), MODEL, get_offsets=True
    )
    assert found.tolist() == [b"eab", b""]
    assert offsets.tolist() == [0, 2, 4, 5, 0]
    assert splits.tolist() == [0, 4, 5]


def test_no_texts() -> None:
    for get_offsets in (False, True):
        found, offsets, splits = fast_bert_normalize(
            string_tensor([]), MODEL, get_offsets=get_offsets
        )
        assert (found.shape, offsets.shape, splits.tolist()) == ((0,), (0,), [0])


@pytest.mark.parametrize("size", [0, 3, 4, 20, 100])
def test_a_model_that_is_cut_off(size: int) -> None:
    with pytest.raises(InvalidArgumentError, match="normalizer model"):
        normalized(MODEL[:size].copy(), b"a")


def test_damaged_models_are_errors_or_give_texts() -> None:
    random = np.random.default_rng(3)
    for _ in range(60):
        model = MODEL.copy()
        places = random.integers(0, 80, 4)
        model[places] = random.integers(0, 256, 4)
        try:
            (found,) = normalized(model, "aÉ".encode())
        except InvalidArgumentError:
            continue
        assert isinstance(found, bytes)


def test_inputs_of_another_rank() -> None:
    with pytest.raises(FailedPreconditionError, match="must be rank 1"):
        normalized(MODEL.reshape(1, -1), b"a")
    with pytest.raises(FailedPreconditionError, match="must be rank 1"):
        fast_bert_normalize(np.array([[b"a"]], object), MODEL, get_offsets=False)
