"""tests/facts.toml: every fact has a test that is there and runs, or a difference that is told."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parents[2]
TABLES = tomllib.loads((ROOT / "tests" / "facts.toml").read_text())
FACTS: dict[str, list[str]] = TABLES["facts"]
DIFFERENCES: dict[str, str] = TABLES["differences"]
SCENARIOS: dict[str, list[str]] = TABLES["scenarios"]
MAX_DIFFERENCES = 15  # facts; more than that would be another runtime

# Prints the tests of the files it is given, without parameters, and "skipped" behind those that
# a mark may keep from running.
COLLECT = """
import sys, pytest
class Tests:
    def pytest_collection_finish(self, session):
        for item in session.items:
            marks = {mark.name for mark in item.iter_markers()}
            skipped = "skipped" if marks & {"skip", "skipif", "xfail"} else ""
            print("test:", item.nodeid.split("[")[0], skipped)
sys.exit(pytest.main(["--collect-only", "-q", *sys.argv[1:]], plugins=[Tests()]))
"""


def named_tests() -> Iterator[str]:
    """Every test that the tables name."""
    for table in (FACTS, SCENARIOS):
        for tests in table.values():
            yield from tests


@pytest.fixture(scope="module")
def collected() -> dict[str, bool]:
    """{test: whether it runs} of the files that the tables name."""
    files = sorted({name.split("::")[0] for name in named_tests()})
    done = subprocess.run(
        [sys.executable, "-c", COLLECT, *files],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found: dict[str, bool] = {}
    for line in done.stdout.splitlines():
        if line.startswith("test: "):
            _, name, *skipped = line.split()
            found[name] = found.get(name, True) and not skipped
    return found


def test_every_fact_and_every_scenario_is_there() -> None:
    assert list(FACTS) == [str(number) for number in range(1, 137)]
    assert list(SCENARIOS) == [str(number) for number in range(1, 16)]


def test_every_named_test_exists_and_runs(collected: dict[str, bool]) -> None:
    missing = sorted({name for name in named_tests() if name not in collected})
    assert missing == []
    skipped = sorted({name for name in named_tests() if not collected[name]})
    assert skipped == []


def test_differences_are_few_and_told() -> None:
    text = (ROOT / "runtime" / "DIFFERENCES.md").read_text()
    told = set(re.findall(r"^\| ([a-z-]+) \|", text, re.MULTILINE))
    assert set(DIFFERENCES.values()) <= told
    assert set(DIFFERENCES) <= set(FACTS)
    assert len(DIFFERENCES) <= MAX_DIFFERENCES
