"""The collector rests while a server is imported, and then leaves alone what exists."""

from __future__ import annotations

import gc
import weakref

import pytest

from server.starting.early_collector import pause_collector, resume_collector


class Node:
    """An object that may be part of a cycle."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def collector():
    yield
    gc.freeze()  # as before: pytest's own objects are a million, which take seconds to visit
    gc.enable()


def test_what_was_made_during_the_pause_is_not_visited_after_it():
    pause_collector()
    assert not gc.isenabled()
    early = weakref.ref(Node())
    resume_collector()
    late = weakref.ref(Node())
    assert gc.isenabled()
    gc.collect()
    assert early() is not None and late() is None
