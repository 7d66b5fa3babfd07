import json
import logging
import re
import sys

import pytest

from server.log import (
    LINES_PER_SECOND,
    MAX_CHARACTERS,
    JsonFormatter,
    RateLimit,
    TextFormatter,
    configure_logging,
)


def record(level=logging.INFO, exc_info=None, **keys):
    made = logging.LogRecord("server.x", level, "x.py", 1, "Hello %s", ("you",), exc_info)
    made.__dict__.update(keys)
    return made


def test_text_lines_have_time_level_logger_message_and_keys():
    line = TextFormatter().format(record(session="s1", other="hidden"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]{12}Z INFO server\.x: Hello you session=s1", line)


def test_json_lines_are_objects():
    entry = json.loads(JsonFormatter().format(record(session="s1", model={"name": "m"})))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]{12}Z", entry.pop("time"))
    assert entry == {
        "level": "INFO", "logger": "server.x", "message": "Hello you", "session": "s1",
        "model": {"name": "m"},
    }  # fmt: skip


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_tracebacks_are_kept(formatter):
    try:
        raise ZeroDivisionError("oops")
    except ZeroDivisionError:
        line = formatter.format(record(exc_info=sys.exc_info()))
    assert "ZeroDivisionError: oops" in line


def test_configuring_sets_level_and_format(capsys):
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        configure_logging("warning", "json")
        logging.getLogger("server.test_log").info("quiet")
        logging.getLogger("server.test_log").warning("loud")
    finally:
        root.handlers[:], root.level = before[0], before[1]
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["message"] == "loud"


def with_text(text, **keys):
    made = record(**keys)
    made.msg, made.args = "%s", (text,)
    return made


FORGED = "2026-01-02T03:04:05.678Z INFO server.x: forged"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x0b", "\x85", "\u2028", "\x1b[2K\r"])
def test_no_text_begins_a_line(end):
    line = TextFormatter().format(with_text(f"a{end}{FORGED}", model=f"b{end}{FORGED}"))
    assert len(line.splitlines()) == 1 and "\x1b" not in line
    (line,) = JsonFormatter().format(with_text(f"a{end}{FORGED}")).splitlines()
    assert json.loads(line)["message"] == f"a{end}{FORGED}"


def test_lines_of_a_traceback_are_indented():
    try:
        raise ZeroDivisionError(f"oops\n{FORGED}\r{FORGED}")
    except ZeroDivisionError:
        text = TextFormatter().format(record(exc_info=sys.exc_info()))
    first, *others = text.splitlines()
    assert "Hello you" in first and len(others) > 2
    assert all(line.startswith("    ") for line in others)


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_long_texts_are_cut(formatter):
    line = formatter.format(with_text("x" * 10_000_000))
    assert len(line) < MAX_CHARACTERS + 200 and "more characters)" in line


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_ids_of_sessions_are_masked(formatter):
    session = "Ab3d-_ghijklmnopqrstuv"
    path = f"POST /v1/sessions/{session}:run"
    line = formatter.format(with_text(path, session=session))
    assert session not in line
    assert line.count("Ab3d…") == 2 and "/v1/sessions/Ab3d…:run" in line


def test_a_loop_that_prints_is_silenced():
    now = [7.0]
    limit = RateLimit(lambda: now[0])
    passed = sum(limit.filter(record()) for _ in range(5 * LINES_PER_SECOND))
    assert passed == LINES_PER_SECOND
    other = record()
    other.name = "server.y"
    assert limit.filter(other)
    now[0] += 1
    first, second = record(), record()
    assert limit.filter(first) and limit.filter(second)
    assert first.left_out == 4 * LINES_PER_SECOND and not hasattr(second, "left_out")
    assert f"left_out={4 * LINES_PER_SECOND}" in TextFormatter().format(first)


def test_the_access_log_has_every_request():
    limit = RateLimit(lambda: 0.0)
    info, warning = record(), record(logging.WARNING)
    info.name = warning.name = "server.access"
    assert all(limit.filter(info) for _ in range(5 * LINES_PER_SECOND))
    assert sum(limit.filter(warning) for _ in range(5 * LINES_PER_SECOND)) == LINES_PER_SECOND
