"""What the server imports late, when clients may have taken all descriptors."""

from __future__ import annotations

import asyncio
import errno
import logging

import pytest

from server.process import late_imports
from server.process.late_imports import with_descriptors


def test_work_is_done_again_until_there_are_descriptors(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(late_imports, "AGAIN_SECONDS", 0.0)
    left = [errno.EMFILE, errno.ENFILE]

    def work(result: str) -> str:
        if left:
            raise OSError(left.pop(), "Too many open files")
        return result

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(with_descriptors(work, "done")) == "done"
    assert [each.getMessage() for each in caplog.records] == [
        f"The server has not started wholly, and tries again: [Errno {number}] Too many open files"
        for number in (errno.ENFILE, errno.EMFILE)
    ]


def test_another_error_is_raised() -> None:
    def work() -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file")

    with pytest.raises(FileNotFoundError):
        asyncio.run(with_descriptors(work))
