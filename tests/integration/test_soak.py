"""A few seconds of `bench.soak`, and of its part in one process."""

from bench.soak.judgement import Minute, total
from bench.soak.run import Plan, soak
from bench.soak.sessions import soak as soak_sessions
from bench.soak.tables import COLUMNS, minute_row

MAX_GROWTH = 50_000_000  # bytes; after a minute it is a tenth of that


def test_sessions_survive_everything_at_once():
    report = soak_sessions(seconds=3, threads=8, seed=1)
    assert report.unexpected == []
    assert report.leaked_threads == []
    assert report.growth < MAX_GROWTH
    kinds = {work for work, _ in report.outcomes}
    assert kinds == {"run", "extend", "miss_a_deadline", "cancel", "close"}


def test_a_server_survives_everything_at_once():
    seen: list[Minute] = []
    plan = Plan(
        seconds=4, warm_up_seconds=1, minute_seconds=2, clients=1, reload_seconds=1,
        settle_seconds=0,
    )  # fmt: skip
    outcome = soak(plan, lambda number, minute: seen.append(minute))
    counts = total(outcome.minutes)
    assert counts.wrong == 0, outcome.notes
    assert not counts.failed, outcome.notes
    assert outcome.log_faults == []
    assert outcome.exit_code == 0
    assert seen == outcome.minutes and len(seen) == 2
    done = {kind.partition(":")[0] for kind in counts.requests}
    assert done == set(COLUMNS) - {"TensorFlow"}
    assert len(minute_row(0, seen[0])) == len(COLUMNS) + 8
