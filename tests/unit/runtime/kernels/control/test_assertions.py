"""Print counts the times that it has printed."""

from __future__ import annotations

import logging
import types
from typing import Any

import pytest

from runtime.kernels.control.assertions import print_


def test_print_counts_its_first_times_once(caplog: pytest.LogCaptureFixture) -> None:
    state: list[Any] = []

    def kernel_state(create: Any) -> Any:
        if not state:
            state.append(create())
        return state[0]

    context: Any = types.SimpleNamespace(kernel_state=kernel_state)

    class Limit(int):
        """The limit 1; comparing a count with it lets another step print in between."""

        def __gt__(self, count: int) -> bool:
            print_(context, 0, U=(), message="inner", first_n=1, summarize=3)
            return count < 1

    with caplog.at_level(logging.INFO):
        print_(context, 0, U=(), message="outer", first_n=Limit(1), summarize=3)
    assert caplog.messages == ["outer"]
