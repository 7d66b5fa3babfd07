"""Configure logging: one line for each event, as text or JSON, with keys to find related lines.

Modules log through `logging.getLogger(__name__)` and pass `extra={"session": …}`. Only the keys in
KEYS are written. Life-cycle events have the level INFO, requests and steps DEBUG.

Texts from the wire, such as names and what a graph prints, are in some lines. Therefore control
characters are escaped, so that no text begins a line; long texts are cut; a logger that writes more
than LINES_PER_SECOND is silenced until the next second, and the next line says how many were left
out. The id of a session is masked, because whoever has it may use the session.
"""

from __future__ import annotations

import datetime
import logging
import re
import threading
import time
from collections.abc import Callable

import orjson

from server.log_stream import log_stream

KEYS = ("request_id", "session", "model", "step_id", "node", "owner", "status", "milliseconds",
        "left_out")  # fmt: skip
LINES_PER_SECOND = 100  # of one logger
MAX_CHARACTERS = 2048  # of one text; a traceback may have MAX_LINES such lines
MAX_LINES = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SESSION_PATH = re.compile(r"(?<=/v1/sessions/)([\w-]{4})[\w-]{18,}")
_SESSION_ID = re.compile(r"([\w-]{4})[\w-]{18,}\Z")
# Ends of lines that JSON allows in strings.
_JSON_ESCAPES = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
_ACCESS_LOG = "server.access"  # if it is on, it has a line for each request
_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def configure_logging(level: str, line_format: str) -> None:
    """Write all records of `level` and above to standard error; `line_format` is text or json."""
    handler = logging.StreamHandler(log_stream())
    handler.setFormatter(JsonFormatter() if line_format == "json" else TextFormatter())
    handler.addFilter(RateLimit())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(_LEVELS[level])
    # These libraries log too much below WARNING.
    for name in ("asyncio", "httpx", "httpcore", "uvicorn"):
        logging.getLogger(name).setLevel(max(_LEVELS[level], logging.WARNING))


class RateLimit(logging.Filter):
    """Passes LINES_PER_SECOND records of each logger; the next one has the rest as `left_out`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()  # guards `_counts`
        # By the name of a logger: the second, and the numbers of records passed and left out.
        self._counts: dict[str, tuple[int, int, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is written."""
        if record.name == _ACCESS_LOG and record.levelno < logging.WARNING:
            return True
        second = int(self._clock())
        with self._lock:
            counted, passed, left_out = self._counts.get(record.name, (second, 0, 0))
            if counted != second:
                passed = 0
            if passed >= LINES_PER_SECOND:
                self._counts[record.name] = (second, passed, left_out + 1)
                return False
            self._counts[record.name] = (second, passed + 1, 0)
        if left_out:
            record.left_out = left_out
        return True


def _shown(text: str) -> str:
    """Cut a text, and mask the session ids of paths in it."""
    if len(text) > MAX_CHARACTERS:
        text = f"{text[:MAX_CHARACTERS]}… ({len(text) - MAX_CHARACTERS} more characters)"
    return _SESSION_PATH.sub(r"\1…", text)


def _escaped(text: str) -> str:
    """Return `_shown(text)` on one line."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], _shown(text))


def _instant(record: logging.LogRecord) -> str:
    instant = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _keys(record: logging.LogRecord) -> dict[str, object]:
    keys = {key: getattr(record, key) for key in KEYS if hasattr(record, key)}
    if "session" in keys:
        keys["session"] = _SESSION_ID.sub(r"\1…", str(keys["session"]))
    return keys


class TextFormatter(logging.Formatter):
    """Formats a line: `2026-01-02T03:04:05.678Z INFO server.sessions: Session opened session=…`."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line; a traceback follows on separate lines, which are indented.

        So every line that begins with a time is a record.
        """
        keys = "".join(f" {key}={_escaped(str(value))}" for key, value in _keys(record).items())
        message = _escaped(record.getMessage())
        line = f"{_instant(record)} {record.levelname} {record.name}: {message}{keys}"
        if record.exc_info:
            lines = self.formatException(record.exc_info).split("\n")[-MAX_LINES:]
            line += "".join(f"\n    {_escaped(each)}" for each in lines)
        return line


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object: time, level, logger, message, keys, exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one JSON object on one line."""
        entry: dict[str, object] = {
            "time": _instant(record),
            "level": record.levelname,
            "logger": record.name,
            "message": _shown(record.getMessage()),
        }
        entry |= _keys(record)
        if record.exc_info:
            lines = self.formatException(record.exc_info).split("\n")[-MAX_LINES:]
            entry["exception"] = "\n".join(map(_shown, lines))
        return orjson.dumps(entry, default=str).decode().translate(_JSON_ESCAPES)
