"""A campaign finds, makes smaller and tells apart what fails."""

from __future__ import annotations

import logging
import random

from runtime.errors import InternalError, InvalidArgumentError, NotFoundError
from tests.fuzz.campaign import minimized, outcome_alone, outcomes_in_a_child, search
from tests.fuzz.target import Target, input_of, outcome_of, signature

WORDS = (b"right", b"raise", b"log", b"say", b"refuse")


class Words(Target):
    name = "words"

    def start(self) -> None:
        self.started = True

    def make(self, random_state: random.Random) -> bytes:
        return b"before " + random_state.choice(WORDS) + b" after"

    def run(self, data: bytes) -> str:
        assert self.started
        if b"raise" in data:
            raise KeyError("value 1")
        if b"log" in data:
            logging.getLogger("a").error("record %s", data)
        if b"say" in data:
            return "WRONG answer"
        if b"refuse" in data:
            return outcome_of(InvalidArgumentError("no"))
        return "right"


def test_each_kind_is_reported_once_and_counted() -> None:
    told = []
    outcomes = search(Words(), range(100), 1, 2, told.append)
    assert sum(outcomes.counts.values()) == 100
    assert outcomes.counts.keys() == {"right", "RAISES", "LOGGED", "WRONG", "invalid_argument"}
    assert {each.signature.partition(" ")[0] for each in told} == {"RAISES", "LOGGED", "WRONG"}
    for finding in outcomes.findings:
        assert finding.count == outcomes.counts[finding.signature.partition(" ")[0]]
        data = input_of(Words(), 1, finding.number)
        assert signature(outcome_alone(Words(), data)) == finding.signature


def test_an_input_is_made_as_small_as_it_can_be() -> None:
    kind = signature(outcome_alone(Words(), b"before say after"))
    assert minimized(Words(), b"before say after", kind) == b"say"


def test_right_outcomes_need_no_details() -> None:
    assert outcomes_in_a_child(Words(), [b"right", b"say"]) == ["right", "WRONG answer"]


def test_an_internal_error_is_a_fault_only_if_it_hides_an_exception() -> None:
    hidden = InternalError("KeyError: 'x'")
    assert outcome_of(InternalError("Duplicate send")) == "internal"
    assert outcome_of(hidden).startswith("FAULT KeyError")
    hidden = InternalError("What TensorFlow says")
    hidden.__cause__ = KeyError("x")
    assert outcome_of(hidden).startswith("FAULT KeyError")
    assert outcome_of(NotFoundError("no node")) == "not_found"
