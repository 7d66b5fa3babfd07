import json
import logging
import re
import sys

import pytest

from server.log import JsonFormatter, TextFormatter, configure_logging


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
