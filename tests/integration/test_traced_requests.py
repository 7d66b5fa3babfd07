"""The way of a step is as short as runtime/README.md says, and passes the files it names."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from tools.trace_requests import MAX_DECIDING, NamedFiles, Trace, problems, read_page

ROOT = pathlib.Path(__file__).parents[2]
WAYS = ["REST run", "predict", "gRPC step", "protobuf run", "callable"]


def test_every_way_is_short_and_passes_named_files_only() -> None:
    done = subprocess.run(
        [sys.executable, "tools/trace_requests.py"],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines() if ":" in line] == WAYS


def test_the_page_names_files_and_folders() -> None:
    named = read_page(
        "| File | Decides |\n| --- | --- |\n| `a.py` | x |\n\n"
        "| File or folder | Translates or carries |\n| --- | --- |\n| `b/`, `c.py` | y |\n\n"
        "| to add | write |\n| --- | --- |\n| `d.py` | z |\n"
    )
    assert named == NamedFiles(("a.py",), ("b/", "c.py"))
    assert all(map(named.has, ("a.py", "b/x.py", "c.py")))
    assert not any(map(named.has, ("d.py", "x/b/y.py")))


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ([f"b/{number}" for number in range(26)], "way: 26 files; at most 25"),
        (["b/1", "b/2"] * 24, "way: 47 moves; at most 46"),
        (["b/1", "other"], "way: other is not named in runtime/README.md"),
    ],
)
def test_what_is_wrong_with_a_way(files: list[str], problem: str) -> None:
    named = NamedFiles((), ("b/",))
    assert problem in problems({"way": Trace([(file, "f") for file in files])}, named)
    assert problems({"way": Trace([("b/1", "f"), ("b/1", "g")])}, named) == []


def test_few_files_may_decide() -> None:
    named = NamedFiles(tuple(map(str, range(MAX_DECIDING + 1))), ())
    assert problems({}, named) == ["11 files decide; at most 10 may"]
