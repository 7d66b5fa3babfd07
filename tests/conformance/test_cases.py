"""Every conformance case on every executor."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

import protos as pb
from runtime.api import OpError, SessionOptions, new_session
from runtime.executors import plan_text, step_plan
from tests.conformance.case import Answer, Case, assert_matches, cases_of, families, read_golden

FAMILIES = families()
# DEFAULT interprets a plan's instructions in the first run; GENERATED forces the generated code,
# which otherwise runs from a later run on.
EXECUTORS = ("DEFAULT", "GENERATED", "DATAFLOW")


def parameters() -> list[object]:
    result: list[object] = []
    for family in FAMILIES:
        golden = read_golden(family)
        result += [
            pytest.param(case, golden.get(case.name), id=f"{family}-{case.name}")
            for case in cases_of(family)
        ]
    return result


def options(executor: str) -> SessionOptions:
    """Return options with which steps run in the caller's thread, on the given executor."""
    config = pb.ConfigProto(inter_op_parallelism_threads=-1)
    config.experimental.executor_type = "DEFAULT" if executor == "GENERATED" else executor
    return SessionOptions(config=config)


# One test of all executors: what pytest does for a test takes as long as the steps of a case.
@pytest.mark.parametrize(("case", "recorded"), parameters())
def test_case(case: Case, recorded: tuple[str, tuple[Answer, ...]] | None) -> None:
    assert recorded is not None, "no recorded answer: run tools/record/cases.py"
    digest, answers = recorded
    assert digest == case.digest, "the case changed: run tools/record/cases.py"
    for executor in EXECUTORS:
        with named_in_failures(executor), generated_at_once(executor == "GENERATED"):
            check(case, answers, options(executor))


@contextlib.contextmanager
def named_in_failures(executor: str) -> Iterator[None]:
    try:
        yield
    except BaseException as error:  # what pytest.raises raises is no Exception
        error.add_note(f"on the executor {executor}")
        raise


@contextlib.contextmanager
def generated_at_once(is_wanted: bool) -> Iterator[None]:
    """Run the generated code of a plan in its first run already, and in parts of few nodes."""
    with pytest.MonkeyPatch.context() as patch:
        if is_wanted:
            patch.setattr(step_plan, "GENERATE_AT_RUN", 1)
            patch.setattr(plan_text, "NODES_A_PART", 2)
        yield


@pytest.mark.parametrize(
    ("case", "recorded"),
    [each for each in parameters() if each.values[0].graph.library.function],  # type: ignore[attr-defined]
)
def test_case_with_functions_at_level_0(
    case: Case, recorded: tuple[str, tuple[Answer, ...]]
) -> None:
    """With the optimiser off, functions are called instead of inlined."""
    how = options("DEFAULT")
    how.config.graph_options.optimizer_options.opt_level = pb.OptimizerOptions.L0
    check(case, recorded[1], how)


def check(case: Case, answers: tuple[Answer, ...], how: SessionOptions) -> None:
    """Run all steps of a case in a new session and compare the results."""
    session = new_session(how)
    try:
        session.create(case.graph)
    except OpError as error:  # TensorFlow's Python front end rejects the graph too
        assert {answer.code for answer in answers} == {error.code}, error.message
        return
    for step, want in zip(case.steps, answers, strict=True):
        if want.code:
            with pytest.raises(OpError) as caught:
                session.run(step.feeds, step.fetches, step.targets)
            assert caught.value.code == want.code, caught.value.message
            if case.message:
                assert caught.value.message == want.message
        else:
            assert_matches(case, session.run(step.feeds, step.fetches, step.targets), want)
