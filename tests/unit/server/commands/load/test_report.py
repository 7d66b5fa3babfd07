import collections

import pytest

from server.commands.load.callers import Measured
from server.commands.load.latencies import Latencies
from server.commands.load.report import describe, describe_size, duration
from server.commands.load.target import Size

SIZE = Size(2.0, 4, None, 1)


def measured(*latencies, failed=(), seconds=2.0, **others):
    found = Latencies()
    for each in latencies:
        found.add(each)
    counted = collections.Counter(failed)
    messages = {code: f"because of {code}" for code in counted}
    return Measured(found, counted, messages, seconds, **others)


def test_figures_errors_and_histogram():
    run = measured(*[0.001] * 97, 0.02, 0.02, 0.5, failed=["NOT_FOUND"] * 2 + ["HTTP 500"])
    lines = list(describe(run, SIZE))
    assert lines[0] == "103 requests in 2.00 s: 51.5 a second; 3 failed"
    assert lines[1] == "  2 × NOT_FOUND: because of NOT_FOUND"
    assert lines[2] == "  1 × HTTP 500: because of HTTP 500"
    assert lines[3] == "latency: p50 1 ms, p90 1 ms, p99 20 ms, max 500 ms"
    rows = lines[5:]
    assert len(rows) == 16
    assert rows[0].split()[-2:] == ["#" * 40, "97"] and rows[-1].split()[-2:] == [".", "1"]


def test_without_an_answer_there_are_no_latencies():
    lines = list(describe(measured(failed=["UNAVAILABLE"]), SIZE))
    assert lines == [
        "1 requests in 2.00 s: 0.5 a second; 1 failed",
        "  1 × UNAVAILABLE: because of UNAVAILABLE",
    ]


@pytest.mark.parametrize(
    ("others", "line"),
    [
        ({"seconds": 0.7}, "stopped after 0.7 s of 2 s"),
        ({"under_way": 3}, "3 requests were still under way and are not counted"),
        ({"unsent": 5}, "5 requests that were due were not sent, because every caller was"),
        ({"client": 0.95}, "the load generator itself used 95% of a core, which may have"),
    ],
)
def test_what_a_reader_must_know(others, line):
    assert any(each.startswith(line) for each in describe(measured(0.1, **others), SIZE))
    assert not any(each.startswith(line) for each in describe(measured(0.1), SIZE))


def test_the_size_in_words():
    assert describe_size(SIZE) == "2 s, 4 callers; each calls again when it is answered"
    assert describe_size(Size(0.5, 1, 20, 1)) == (
        "0.5 s, 1 caller; 20 calls a second, measured from the time each is due"
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 µs"), (1.234e-5, "12.3 µs"), (0.5, "500 ms"), (0.00123, "1.23 ms"), (75.4, "75.4 s")],
)
def test_durations_have_three_digits(seconds, text):
    assert duration(seconds) == text
