"""Configure logging: one line for each event, as text or JSON, with keys to find related lines.

Modules log through `logging.getLogger(__name__)` and pass `extra={"session": …}`. Only the keys in
KEYS are written. Life-cycle events have the level INFO, requests and steps DEBUG.
"""

from __future__ import annotations

import datetime
import logging

import orjson

from server.log_stream import log_stream

KEYS = ("request_id", "session", "model", "step_id", "node", "status", "milliseconds")
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
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(_LEVELS[level])
    # These libraries log too much below WARNING.
    for name in ("asyncio", "httpx", "httpcore", "uvicorn"):
        logging.getLogger(name).setLevel(max(_LEVELS[level], logging.WARNING))


def _instant(record: logging.LogRecord) -> str:
    instant = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _keys(record: logging.LogRecord) -> dict[str, object]:
    return {key: getattr(record, key) for key in KEYS if hasattr(record, key)}


class TextFormatter(logging.Formatter):
    """Formats a line: `2026-01-02T03:04:05.678Z INFO server.sessions: Session opened session=…`."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line; a traceback follows on separate lines."""
        keys = "".join(f" {key}={value}" for key, value in _keys(record).items())
        line = f"{_instant(record)} {record.levelname} {record.name}: {record.getMessage()}{keys}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object: time, level, logger, message, keys, exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one JSON object on one line."""
        entry: dict[str, object] = {
            "time": _instant(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= _keys(record)
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(entry, default=str).decode()
