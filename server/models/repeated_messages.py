"""Log a message that repeats once, and then how often it has come."""

from __future__ import annotations

import dataclasses
import logging


@dataclasses.dataclass(slots=True)
class _Last:
    text: str
    count: int = 1


class RepeatedMessages:
    """The last message about each of several things; used by one thread at a time.

    The first of equal messages is logged, and then the 10th, the 100th and so on with their number.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._last: dict[str, _Last] = {}

    def log(self, what: str, level: int, text: str, error: BaseException | None = None) -> None:
        """Log a message about `what`, unless it repeats the last one.

        The first of equal messages has the trace of `error`, if there is one.
        """
        last = self._last.get(what)
        if last is None or last.text != text:
            self._last[what] = _Last(text)
            self._logger.log(level, "%s", text, exc_info=error)
            return
        last.count += 1
        if str(last.count).strip("0") == "1":
            self._logger.log(level, "%s (%d times)", text, last.count)

    def over(self, what: str) -> None:
        """Log that what the last message about `what` says is over, if it had been repeated."""
        last = self._last.pop(what, None)
        if last is not None and last.count > 1:
            self._logger.info("Over after %d times: %s", last.count, last.text)
