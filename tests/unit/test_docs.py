"""The documents say what the code does."""

from __future__ import annotations

import collections
import pathlib
import re
import subprocess
import sys

from server.commands.model_server_flags import FLAGS

ROOT = pathlib.Path(__file__).parent.parent.parent


def test_tables_of_operations_are_up_to_date() -> None:
    command = [sys.executable, "tools/write/op_table.py", "--check"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert result.returncode == 0, result.stdout + result.stderr


def test_table_of_gradients_is_up_to_date() -> None:
    command = [sys.executable, "tools/write/gradient_table.py", "--check"]
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


def test_pictures_of_documents_are_in_the_repository() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")]
    missing = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text())
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert missing == []


def test_documents_install_the_package_from_a_clone() -> None:
    """It is on no index, so that its name alone installs nothing."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = [page.name for page in pages if re.search(r"pip install '?runstep", page.read_text())]
    assert named == []
    assert "`. .venv/bin/activate`" in (ROOT / "README.md").read_text()


def test_the_tests_of_bad_days_exist() -> None:
    named = set(re.findall(r"`(test_\w+\.py)`", (ROOT / "docs" / "bad_days.md").read_text()))
    there = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert len(named) > 10
    assert named - there == set()


def test_readme_counts_the_flags_of_tensorflow_serving() -> None:
    text = " ".join((ROOT / "README.md").read_text().split())
    counts = collections.Counter(flag.treatment for flag in FLAGS)
    assert (
        f"all {len(FLAGS)} of `tensorflow_model_server` are accepted, {counts['honoured']} are "
        f"honoured, {counts['no effect']} have no effect here and {counts['refused']} are refused"
    ) in text


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
