"""A few seconds of `bench.mixed_load`: every event once, with a large model that is small."""

from bench.mixed_load.probe import FRONT
from bench.mixed_load.run import Plan, mixed_load
from bench.mixed_load.sender import PREDICTIONS, SESSIONS
from bench.mixed_load.tables import figures


def test_no_request_fails_while_models_come_and_go_and_a_server_drains():
    seen: list[str] = []
    outcome = mixed_load(Plan(0, clients=1, probe_rate=50, megabytes=2, pause=0.2), seen.append)
    found = figures(outcome)
    assert found["failed"] == 0, outcome.notes
    assert outcome.faults == []
    assert [event.kind for event in outcome.events] == seen
    assert len(seen) == 5
    # The drain during the run, and the one at its end.
    assert len(outcome.running) == 2
    fronts = {*PREDICTIONS, *(f"{front}, balanced" for front in PREDICTIONS), SESSIONS, FRONT}
    assert fronts <= outcome.counts.keys()
    assert len(outcome.times) == sum(outcome.counts[FRONT].values())
