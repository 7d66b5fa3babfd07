"""Fixtures of the unit tests."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(scope="session", autouse=True)
def reports_are_not_collected() -> None:
    """Keep from the collector the reports of tests that ran before, 20 objects for each."""
    gc.collect()
    gc.freeze()
