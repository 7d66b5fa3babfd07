"""The random cases that are compared with TensorFlow: made, sent, judged (without TensorFlow)."""

from __future__ import annotations

import io

import numpy as np
import pytest

from runtime.framework.dtypes import DataType
from tests.conformance.case import Answer, case
from tools import oracle
from tools.oracle_comparison import agreement, known_differences, mutation, wire

ADD = case("AddV2", np.array([[1.0, 2.0]], np.float32), np.float32(3), name="add")
SQUEEZE = case("Squeeze", np.ones((1, 2, 1), np.float32), squeeze_dims=[0], name="squeeze")


@pytest.mark.parametrize("number", range(20))
def test_a_random_case_is_made_from_its_numbers_alone(number: int) -> None:
    first, second = (
        mutation.mutated(ADD, "AddV2", DataType.INT16, "add", [1, number]) for _ in range(2)
    )
    assert first.digest == second.digest
    assert first.graph.node[-1].attr["T"].type == DataType.INT16
    assert {value.dtype for value in first.steps[0].feeds.values()} == {np.dtype(np.int16)}


def test_random_cases_differ_and_leave_the_recorded_one_alone() -> None:
    before = SQUEEZE.digest
    made = {
        mutation.mutated(SQUEEZE, "Squeeze", DataType.FLOAT, "squeeze", [number]).digest
        for number in range(30)
    }
    assert len(made) > 15
    assert SQUEEZE.digest == before


def test_cases_and_answers_cross_the_pipe() -> None:
    stream = io.BytesIO()
    answer = Answer((np.array([b"\xff", b""], object), np.float16(2)), 0, "")
    wire.write_frame(stream, (wire.pack_case(ADD), wire.pack_answer(answer)))
    stream.seek(0)
    packed_case, packed_answer = wire.read_frame(stream)
    assert wire.unpack_case(packed_case).digest == ADD.digest
    strings, half = wire.unpack_answer(packed_answer).values
    assert strings.tolist() == [b"\xff", b""]
    assert half == np.float16(2)
    assert half.dtype == np.float16
    assert wire.read_frame(stream) is None


def test_equal_values_agree_and_others_are_shown() -> None:
    ours = agreement.our_answers(ADD)
    assert (
        agreement.compare(ADD, ours, [Answer((np.array([[4, 5]], np.float32),))]).difference == ""
    )
    other = agreement.compare(ADD, ours, [Answer((np.array([[4, 6]], np.float32),))])
    assert "Mismatched elements: 1 / 2" in other.difference
    wide = agreement.compare(ADD, ours, [Answer((np.array([[4, 5]], np.float64),))])
    assert "dtype float32, expected float64" in wide.difference


def test_errors_agree_by_code_and_their_words_are_counted_apart() -> None:
    wrong = case("AddV2", np.ones(2, np.float32), np.ones(3, np.float32), name="wrong")
    ours = agreement.our_answers(wrong)
    same = "Incompatible shapes: [2] vs. [3]\n\t [[{{node result}}]]"
    assert agreement.compare(wrong, ours, [Answer(code=3, message=same)]) == agreement.Verdict()
    other = agreement.compare(wrong, ours, [Answer(code=3, message="no")])
    assert other == agreement.Verdict(message=True)
    code = agreement.compare(wrong, ours, [Answer(code=13, message="no")])
    assert code.difference == (
        "here error 3 Incompatible shapes: [2] vs. [3]; TensorFlow error 13 no"
    )


def test_a_documented_difference_is_known() -> None:
    ours: list[Answer | str] = [Answer((np.ones(1, np.float32),))]
    refused = [Answer(code=12, message="Conv2D currently only supports NHWC")]
    assert known_differences.reason_for("Conv2D", ADD, ours, refused)
    assert not known_differences.reason_for("Conv2D", ADD, ours, [Answer(code=3, message="no")])


def test_types_without_a_list_are_the_plain_ones() -> None:
    assert mutation.allowed_types("Identity", "T") == list(mutation.PLAIN_TYPES)
    assert DataType.FLOAT in mutation.allowed_types("MatMul", "T")
    assert DataType.STRING not in mutation.allowed_types("MatMul", "T")


def test_counts_are_summed() -> None:
    total = oracle.sum_of({"float32": oracle.Tally(3, 2), "int8": oracle.Tally(1, 1, 0, 1)})
    assert total == oracle.Tally(tried=4, agreed=3, other_words=1)
