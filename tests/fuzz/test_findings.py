"""What was a finding once is none any more."""

from __future__ import annotations

import pytest

from tests.fuzz.campaign import outcomes_in_a_child
from tests.fuzz.findings import kept
from tests.fuzz.targets.registered import TARGETS, make_target

WITH_FINDINGS = [name for name in TARGETS if kept(name)]


@pytest.mark.parametrize("name", WITH_FINDINGS)
def test_kept_findings(name: str) -> None:
    paths = kept(name)
    outcomes = outcomes_in_a_child(make_target(name), [path.read_bytes() for path in paths])
    wrong = {
        path.name: outcome
        for path, outcome in zip(paths, outcomes, strict=True)
        if outcome.split(" ", 1)[0].isupper()
    }
    assert wrong == {}
