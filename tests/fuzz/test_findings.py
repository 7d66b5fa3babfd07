"""What was a finding once is none any more."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.fuzz.findings import kept
from tests.fuzz.targets.registered import TARGETS

WITH_FINDINGS = [name for name in TARGETS if kept(name)]
# In a process of its own, because a child that is forked beside threads may wait for their locks.
_RUN = """
import json, sys
from tests.fuzz.campaign import outcomes_in_a_child
from tests.fuzz.findings import kept
from tests.fuzz.targets.registered import make_target
name = sys.argv[1]
outcomes = outcomes_in_a_child(make_target(name), [path.read_bytes() for path in kept(name)])
print(json.dumps(outcomes))
"""


@pytest.mark.parametrize("name", WITH_FINDINGS)
def test_kept_findings(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _RUN, name], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout.splitlines()[-1])
    paths = kept(name)
    wrong = {
        path.name: outcome
        for path, outcome in zip(paths, outcomes, strict=True)
        if outcome.split(" ", 1)[0].isupper()
    }
    assert wrong == {}
