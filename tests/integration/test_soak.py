"""Three seconds of `bench.soak`: only documented errors, flat memory, no thread left."""

from bench.soak import soak

MAX_GROWTH = 50_000_000  # bytes; after a minute it is a tenth of that


def test_sessions_survive_everything_at_once():
    report = soak(seconds=3, threads=8, seed=1)
    assert report.unexpected == []
    assert report.leaked_threads == []
    assert report.growth < MAX_GROWTH
    kinds = {work for work, _ in report.outcomes}
    assert kinds == {"run", "extend", "miss_a_deadline", "cancel", "close"}
