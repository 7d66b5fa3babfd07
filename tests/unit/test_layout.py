"""The tests of a module are found by its path, and no folder is too large to read.

The tests of `runtime/a/b/module.py` are in `tests/unit/runtime/a/b/test_module.py` or, in several
files, `test_module_<aspect>.py`. A behaviour that crosses the modules of the folder `b` is tested
in `test_b_<aspect>.py` of the same folder. Tests of the repository as a whole are in `tests/unit`.
"""

from __future__ import annotations

import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
UNIT = ROOT / "tests" / "unit"
MAX_MODULES = 30


def modules_in(folder: pathlib.Path) -> list[str]:
    """The names of the modules of a package, without those of its subpackages."""
    return sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


def is_in_place(test: pathlib.PurePath) -> bool:
    """Whether a test file, relative to tests/unit, mirrors a module or a folder."""
    folder = ROOT / test.parent
    tested = test.stem.removeprefix("test_")
    if not (folder / "__init__.py").exists():
        return False
    return tested in modules_in(folder) or any(
        tested.startswith(f"{name}_") for name in (*modules_in(folder), folder.name)
    )


def test_every_unit_test_mirrors_a_module_or_a_folder() -> None:
    tests = [path.relative_to(UNIT) for path in UNIT.rglob("test_*.py") if path.parent != UNIT]
    assert len(tests) > 100
    misplaced = {str(path) for path in tests if not is_in_place(path)}
    assert sorted(misplaced) == []


@pytest.mark.parametrize(
    ("test", "is_right"),
    [
        ("runtime/sessions/direct/test_direct_session.py", True),
        ("runtime/sessions/direct/test_direct_session_life_cycle.py", True),
        ("runtime/sessions/direct/test_direct_hostile_graphs.py", True),  # of the folder
        ("runtime/sessions/test_direct_session.py", False),  # the module is in `direct`
        ("runtime/sessions/direct/test_hostile_graphs.py", False),  # no module has the name
        ("runtime/sessions/direct/test_direct.py", False),  # a folder without an aspect
        ("runtime/kernels/everything/test_everything_else.py", False),  # no such folder
        ("runtime/test_sessions_of_all_kinds.py", False),  # a folder elsewhere
    ],
)
def test_a_misplaced_test_is_noticed(test: str, is_right: bool) -> None:
    assert is_in_place(pathlib.PurePath(test)) is is_right


def test_no_folder_holds_too_many_modules() -> None:
    counts = {
        str(path.parent.relative_to(ROOT)): len(modules_in(path.parent))
        for package in ("runtime", "server")
        for path in (ROOT / package).rglob("__init__.py")
    }
    assert counts
    assert {folder: count for folder, count in counts.items() if count > MAX_MODULES} == {}
