"""check_names: what shadows Runstep's packages is said in a sentence."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from runstep.names import NAMES, check_names

ROOT = pathlib.Path(__file__).parents[3]


def run(folder: pathlib.Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, which comes first on its path, with Runstep installed."""
    return subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=60,
        env={"PYTHONPATH": f"{folder}:{ROOT}", "PATH": ""},
    )  # fmt: skip


def test_the_own_packages_are_found() -> None:
    check_names()


@pytest.mark.parametrize("name", NAMES)
def test_a_package_of_the_same_name_is_named(tmp_path: pathlib.Path, name: str) -> None:
    (tmp_path / name).mkdir()
    shadow = tmp_path / name / "__init__.py"
    shadow.touch()
    ended = run(tmp_path, "-c", "from runstep.launcher import runstep; runstep()", "version")
    assert ended.returncode == 1
    own = ROOT / name / "__init__.py"
    assert ended.stderr == (
        f"runstep: {shadow} shadows Runstep's package {name} ({own}): start from another folder, "
        "or install runstep in an environment of its own\n"
    )


def test_a_module_that_shadows_the_runtime_is_named_by_the_client(tmp_path: pathlib.Path) -> None:
    (tmp_path / "runtime.py").touch()
    ended = run(tmp_path, "-c", "from runstep import Client")
    assert ended.returncode == 1
    assert f"ShadowedError: {tmp_path / 'runtime.py'} shadows Runstep's package runtime" in (
        ended.stderr
    )


def test_other_folders_do_no_harm(tmp_path: pathlib.Path) -> None:
    ended = run(tmp_path, "-m", "runstep", "version")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("runstep ")
