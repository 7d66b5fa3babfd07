"""The counts of a mixed load."""

from __future__ import annotations

from bench.mixed_load.tally import ELSEWHERE, MAX_NOTES, Tally, failed
from bench.soak.record import Failed, WrongAnswer


def test_what_fails_is_counted_by_front_and_code_and_noted() -> None:
    tally = Tally()
    tally.add("REST")
    with tally.watched("REST"):
        raise Failed("UNAVAILABLE", "no")
    with tally.watched("REST"):
        raise WrongAnswer("5 instead of 4")
    with tally.watched("gRPC"):
        raise ValueError("a fault of the client")
    assert tally.counts() == {
        "REST": {"OK": 1, "UNAVAILABLE": 1, "WRONG_ANSWER": 1}, "gRPC": {"NO_ANSWER": 1},
    }  # fmt: skip
    assert tally.notes[0] == "REST: UNAVAILABLE: UNAVAILABLE: no"
    assert [failed(codes) for codes in tally.counts().values()] == [2, 1]


def test_what_was_sent_elsewhere_has_not_failed() -> None:
    assert failed({"OK": 3, ELSEWHERE: 2}) == 0


def test_few_texts_are_kept() -> None:
    tally = Tally()
    for _ in range(MAX_NOTES + 5):
        tally.fail("REST", "INTERNAL", "again")
    assert len(tally.notes) == MAX_NOTES
    assert tally.counts() == {"REST": {"INTERNAL": MAX_NOTES + 5}}
