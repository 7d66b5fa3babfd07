"""The time of day."""

from __future__ import annotations

from tests.conformance.case import case

CASES = (case("Timestamp", shape_only=True),)
