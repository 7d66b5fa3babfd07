"""This runtime's answers to cases, and their comparison with TensorFlow's."""

from __future__ import annotations

import dataclasses
import re
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import protos as pb
from runtime.api import OpError, SessionOptions, new_session
from tests.conformance.case import Answer, Case, assert_matches

TIMEOUT = 20  # seconds for one case
AGAIN = 5  # seconds between further interrupts after the timeout


@dataclasses.dataclass(frozen=True)
class Verdict:
    """`difference` is "" if both agree; `message`: both fail alike with different messages."""

    difference: str = ""
    message: bool = False


def our_answers(case: Case, timeout: float = TIMEOUT) -> list[Answer | str]:
    """Return one answer for each step; a string for an exception that is no OpError.

    `timeout` is in seconds, for a step.
    """
    config = pb.ConfigProto(inter_op_parallelism_threads=-1)
    config.experimental.executor_type = "DATAFLOW"  # compiles nothing: a case runs once
    try:
        session = new_session(SessionOptions(config=config))
        session.create(case.graph)
    except OpError as error:
        return [Answer(code=int(error.code), message=error.message) for _ in case.steps]
    return [_step(session, step, timeout) for step in case.steps]


def _step(session: object, step: object, timeout: float) -> Answer | str:
    try:
        with _deadline(timeout), warnings.catch_warnings():
            warnings.simplefilter("error")
            values = session.run(step.feeds, step.fetches, step.targets)  # type: ignore[attr-defined]
        return Answer(tuple(np.asarray(value) for value in values))
    except OpError as error:
        return Answer(code=int(error.code), message=error.message)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@contextmanager
def _deadline(timeout: float) -> Iterator[None]:
    def expired(*_: object) -> None:
        raise TimeoutError(f"no answer in {timeout} s")

    before = signal.signal(signal.SIGALRM, expired)
    # Repeated, because a kernel may catch the first exception and continue.
    signal.setitimer(signal.ITIMER_REAL, timeout, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def compare(case: Case, ours: list[Answer | str], theirs: list[Answer]) -> Verdict:
    """Compare the answers to each step; the verdict is about the first step that differs."""
    other_words = False
    for got, want in zip(ours, theirs, strict=True):
        if isinstance(got, str):
            return Verdict(f"here {got}; TensorFlow {_shown(want)}")
        if got.code != want.code:
            return Verdict(f"here {_shown(got)}; TensorFlow {_shown(want)}")
        if want.code:
            other_words = other_words or _words(got) != _words(want)
            continue
        try:
            assert_matches(case, got.values, want)
        except AssertionError as error:
            words = " ".join(str(error).split())[:400]
            return Verdict(words or f"{len(got.values)} values, expected {len(want.values)}")
    return Verdict(message=other_words)


def _words(answer: Answer) -> str:
    """Return the message without the node that TensorFlow's errors append."""
    message = answer.message.split(" for '{{node ")[0].split("\n\t [[{{node")[0]
    # The step's number counts the earlier steps of the process.
    return re.sub(r"__per_step_\d+", "__per_step_1", message)


def _shown(answer: Answer) -> str:
    if answer.code:
        return f"error {answer.code} {answer.message.splitlines()[0] if answer.message else ''}"
    return "values " + ", ".join(f"{v.dtype}{list(v.shape)}" for v in answer.values)
