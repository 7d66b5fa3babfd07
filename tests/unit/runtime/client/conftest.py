"""Fixtures of the front end's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runtime.client import Graph, Session
from tests.unit.runtime.client.program_of_elements import Program


@pytest.fixture
def graph() -> Iterator[Graph]:
    """A new graph, which is the default one during the test."""
    with Graph().as_default() as graph:
        yield graph


@pytest.fixture
def session() -> Iterator[Session]:
    """A session of a new graph; both are the default ones during the test."""
    with Graph().as_default(), Session() as session:
        yield session


@pytest.fixture(scope="module")
def program() -> Program:
    """A graph with elements of every kind and its session, for all tests of a file."""
    return Program()
