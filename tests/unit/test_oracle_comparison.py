"""The random cases that are compared with TensorFlow: made, sent, judged (without TensorFlow)."""

from __future__ import annotations

import functools
import io
import pathlib
from collections.abc import Sequence
from multiprocessing.connection import Connection

import numpy as np
import pytest

from runtime.framework.dtypes import DataType
from tests.conformance.case import Answer, Case, case
from tests.conformance.shown_types import nodes_of, recorded_cases
from tools.oracle_comparison import (
    agreement,
    comparison,
    known_differences,
    left_out,
    mutation,
    progress,
    seeds,
    wire,
    workers,
)
from tools.oracle_comparison.reference import Answers

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


def test_another_number_of_values_is_a_difference() -> None:
    none = agreement.compare(ADD, agreement.our_answers(ADD), [Answer()])
    assert none.difference == "1 values, expected 0"


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


@pytest.mark.parametrize(
    ("indices", "is_odd"),
    [
        ([[0, 1], [2, 0]], False),
        ([[2, 0], [0, 1]], True),  # out of order
        ([[0, 1], [0, 1]], True),  # repeated
        ([[0, 1], [3, 0]], True),  # beyond the shape
        ([[0, -1], [2, 0]], True),
    ],
)
def test_sparse_tensors_that_tensorflow_does_not_check(
    indices: list[list[int]], is_odd: bool
) -> None:
    values, shape = np.ones(2, np.float32), np.array([3, 4], np.int64)
    reordered = case("SparseReorder", np.array(indices, np.int64), values, shape)
    ours: list[Answer | str] = [Answer(code=3)]
    assert (
        bool(known_differences.reason_for("SparseReorder", reordered, ours, [Answer()])) == is_odd
    )


def test_an_error_of_the_compiler_is_one_here() -> None:
    refused = Answer(code=2, message="<unknown>:0: error: loc(fused[x]): 'tf.XlaConv' op expects")
    for ours, is_known in ((Answer(code=3), True), (Answer(), False), (Answer(code=13), False)):
        reason = known_differences.reason_for("XlaConv", ADD, [ours], [refused])
        assert bool(reason) == is_known
    other = Answer(code=2, message="error")
    assert not known_differences.reason_for("XlaConv", ADD, [Answer(code=3)], [other])


@pytest.mark.parametrize(
    ("preferred", "is_known"), [(DataType.FLOAT, False), (DataType.INT32, True)]
)
def test_convolutions_of_another_type_are_not_compared(preferred: DataType, is_known: bool) -> None:
    image, kernel, ones = np.ones((1, 3, 1), "f"), np.ones((1, 1, 1), "f"), np.ones(1, np.int32)
    made = case(
        "XlaConvV2", image, kernel, ones, np.zeros((1, 2), np.int32), ones, ones, np.int32(1),
        dimension_numbers=b"", precision_config=b"", preferred_element_type=preferred,
    )  # fmt: skip
    assert bool(known_differences.reason_for("XlaConvV2", made, [Answer()], [Answer()])) == is_known


@pytest.mark.parametrize(("rate", "is_known"), [(1, False), (2, True)])
def test_dilations_of_depthwise_gradients_are_not_compared(rate: int, is_known: bool) -> None:
    op = "DepthwiseConv2dNativeBackpropInput"
    image, kernel = np.ones((1, 4, 4, 1), "f"), np.ones((2, 2, 1, 1), "f")
    made = case(
        op, np.int32(image.shape), kernel, image, strides=[1, 1, 1, 1], padding="SAME",
        dilations=[1, rate, rate, 1],
    )  # fmt: skip
    assert bool(known_differences.reason_for(op, made, [Answer()], [Answer()])) == is_known


def test_types_without_a_list_are_the_plain_ones() -> None:
    assert mutation.allowed_types("Identity", "T") == list(mutation.PLAIN_TYPES)
    assert DataType.FLOAT in mutation.allowed_types("MatMul", "T")
    assert DataType.STRING not in mutation.allowed_types("MatMul", "T")


def test_counts_are_summed() -> None:
    total = comparison.sum_of(
        [
            comparison.Tally(values=3, differing=1, excused={"half types": 2}),
            comparison.Tally(values=1, refusals=2, excused={"half types": 1, "denormal": 1}),
        ]
    )
    assert total == comparison.Tally(4, 0, 2, 1, {"half types": 3, "denormal": 1})
    assert (total.agreed, total.tried) == (6, 7)


class Answering:
    """In TensorFlow's place: adds, or has no answer."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def open(self, op: str) -> None: ...

    def save(self) -> None: ...

    def answers(self, cases: Sequence[Case]) -> list[Answers]:
        return [self._answers for _ in cases]


def test_an_op_that_has_no_answers_or_cannot_be_made_gives_a_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(comparison, "seeds_by_op", lambda: {"AddV2": [ADD]})
    monkeypatch.setattr(comparison, "types_of", lambda op: [DataType.FLOAT, DataType.RESOURCE])
    request = comparison.Request(cases=4)
    report = comparison.compare_op(Answering("TensorFlow crashed"), "AddV2", request)  # type: ignore[arg-type]
    assert report.total == comparison.Tally(no_reference=8)
    assert len(report.lines) == 4
    assert report.lines[0].startswith("AddV2/resource/0 not made: ")


def test_an_error_that_nobody_expected_is_a_line_of_the_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(comparison, "seeds_by_op", lambda: {"AddV2": [ADD]})
    monkeypatch.setattr(comparison, "types_of", lambda op: [DataType.FLOAT])
    reference = Answering([*agreement.our_answers(ADD), Answer()])  # a step too many
    monkeypatch.setattr(comparison, "make_case", lambda *_: ADD)
    report = comparison.compare_op(reference, "AddV2", comparison.Request(cases=1))  # type: ignore[arg-type]
    assert report.total == comparison.Tally(differing=1)
    assert report.lines[0].startswith("add: not judged: ValueError: ")


def unreliable(pipe: Connection) -> None:
    while (op := pipe.recv()) != "ends":
        pipe.send("not compared: why" if op == "fails" else comparison.Report(op))


def test_a_worker_that_ends_costs_one_report() -> None:
    ops = ["fine", "fails", "ends", "also fine"]
    start = functools.partial(workers.Worker, unreliable)
    assert list(workers.in_parallel(start, ops, jobs=1)) == [
        comparison.Report("fine"),
        comparison.Report("fails", lines=["fails: not compared: why"]),
        comparison.Report("ends", lines=["ends: not compared: it ended the process"]),
        comparison.Report("also fine"),
    ]


def test_a_stopped_run_goes_on_and_another_begins_again(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "progress.jsonl"
    report = comparison.Report(
        "Tile", {"int32": comparison.Tally(3, 2, excused={"half types": 1})}, ["Tile/int32/1: no"]
    )
    first = progress.Progress(path, comparison.Request())
    assert first.reports() == {}
    first.begin({})
    first.add(report)
    with path.open("a") as file:
        file.write('{"op": "Wh')  # the run was stopped here
    assert progress.Progress(path, comparison.Request()).reports() == {"Tile": report}
    assert progress.Progress(path, comparison.Request(seed=2)).reports() == {}
    first.finish()
    assert first.reports() == {}


def test_every_op_with_a_recorded_case_is_asked_or_left_out_for_a_reason() -> None:
    recorded = {node.op for _, case, _ in recorded_cases() for node in nodes_of(case)}
    silent = {op for op in recorded if not left_out.reason_left_out(op)}
    assert silent - set(seeds.seeds_by_op()) == set()


def test_a_case_belongs_to_the_rarest_op_in_it_and_others_borrow() -> None:
    assert not seeds.is_borrowed("TensorListLength")
    assert seeds.is_borrowed("VarHandleOp")
    assert len(seeds.seeds_by_op()["VarHandleOp"]) == seeds.MAX_BORROWED


def _verdict(op: str, made: Case, ours: Sequence[object], theirs: Sequence[object]) -> str:
    got, want = (Answer(tuple(np.asarray(each) for each in values)) for values in (ours, theirs))
    return known_differences.reason_for(op, made, [got], [want])


def test_boxes_change_places_only_where_scores_are_equal() -> None:
    boxes = np.array([[[[0, 0, 1, 1]], [[0, 2, 1, 3]]]], np.float32)
    scores = np.array([[[0.5, 0.5], [0.25, 0.125]]], np.float32)
    one, half = np.int32(3), np.float32(0.5)
    made = case("CombinedNonMaxSuppression", boxes, scores, one, one, half, np.float32(0))
    chosen = boxes[:, [0, 0, 1], 0], np.float32([[0.5, 0.5, 0.25]])
    count = np.int32([3])
    ours = (*chosen, np.float32([[0, 1, 0]]), count)
    swapped = (*chosen, np.float32([[1, 0, 0]]), count)
    other_class = (*chosen, np.float32([[0, 1, 1]]), count)
    assert _verdict("CombinedNonMaxSuppression", made, ours, swapped) == "equal scores"
    assert _verdict("CombinedNonMaxSuppression", made, ours, other_class) == ""


def test_keys_of_a_map_come_in_any_order_but_are_the_same() -> None:
    made = case("Identity", np.int8([1, 2]))
    made.graph.node[-1].op = "TensorMapStackKeys"
    op, words = "TensorMapStackKeys", "the order of a map's keys"
    assert _verdict(op, made, [np.int8([1, 2])], [np.int8([2, 1])]) == words
    assert _verdict(op, made, [np.int8([1, 2])], [np.int8([2, 2])]) == ""
