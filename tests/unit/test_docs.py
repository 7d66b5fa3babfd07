"""The documents say what the code does."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parent.parent.parent


def test_tables_of_operations_are_up_to_date() -> None:
    command = [sys.executable, "tools/write_op_table.py", "--check"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert result.returncode == 0, result.stdout + result.stderr


def test_links_in_documents_lead_somewhere() -> None:
    broken = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("*/README.md")]:
        broken += [
            f"{page.relative_to(ROOT)}: {target}"
            for target in re.findall(r"\]\(([^)#]+)\)", page.read_text())
            if "://" not in target and not (page.parent / target).exists()
        ]
    assert broken == []


def test_the_tests_of_bad_days_exist() -> None:
    named = set(re.findall(r"`(test_\w+\.py)`", (ROOT / "docs" / "bad_days.md").read_text()))
    there = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert len(named) > 10
    assert named - there == set()


def test_readme_lists_the_flags_of_tensorflow_serving_that_are_accepted() -> None:
    text = (ROOT / "README.md").read_text()
    counted = re.search(
        r"\*\*Flags\*\*: (\d+) of its (\d+)\. These (\d+) are accepted: ([^.]*)\.", text
    )
    assert counted is not None
    missing, total, accepted = map(int, counted.groups()[:3])
    listed = set(re.findall(r"`--(\w+)`", counted[4]))
    result = subprocess.run(
        [sys.executable, "-m", "server.main", "serve", "--help"],
        cwd=ROOT, capture_output=True, text=True, timeout=100, check=True,
    )  # fmt: skip
    ours = {"config", "host", "help"}
    assert listed == set(re.findall(r"--(\w+)", result.stdout)) - ours
    assert (len(listed), total) == (accepted, missing + accepted)


def test_files_named_in_the_map_exist() -> None:
    text = (ROOT / "runtime" / "README.md").read_text()
    named = set(
        re.findall(
            r"`((?:graph|executors|kernels|sessions|framework|foundation|server|tests)/[\w/]+\.py)`",
            text,
        )
    )
    assert named
    missing = [
        name for name in named if not ((ROOT / name).exists() or (ROOT / "runtime" / name).exists())
    ]
    assert missing == []
