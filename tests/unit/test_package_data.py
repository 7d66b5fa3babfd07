"""What the wheel will have, without building it: `make test-package` looks into the built one."""

from __future__ import annotations

import glob
import pathlib
import subprocess
import tomllib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = ("protos", "runstep", "runtime", "server")
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


def tracked() -> list[pathlib.Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [pathlib.Path(name) for name in listed.stdout.split("\0") if name]


TRACKED = tracked()
FOLDERS = {path.parent for path in TRACKED if path.name == "__init__.py"}


def declared() -> set[pathlib.Path]:
    """The files that pyproject.toml's package-data names, as setuptools reads it."""
    found = set()
    for package, patterns in SETUPTOOLS["package-data"].items():
        folders = FOLDERS if package == "*" else {pathlib.Path(package.replace(".", "/"))}
        for folder in folders:
            for pattern in patterns:
                names = glob.glob(pattern, root_dir=ROOT / folder, recursive=True)
                found |= {folder / name for name in names}
    return found


def test_every_package_is_found() -> None:
    assert {f"{package}*" for package in PACKAGES} <= set(SETUPTOOLS["packages"]["find"]["include"])
    modules = [path for path in TRACKED if path.suffix == ".py"]
    outside = [
        path for path in modules
        if not {path.parent, *path.parent.parents} - {pathlib.Path()} <= FOLDERS
    ]  # fmt: skip
    assert outside == []
    assert len(modules) > 500


def test_every_data_file_is_declared() -> None:
    # Sources of generated code and documents beside the code are not installed.
    data = {path for path in TRACKED if path.suffix not in (".py", ".pyi", ".proto", ".md")}
    assert sorted(map(str, data - declared())) == []
    assert len(data) > 5


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_are_typed(package: str) -> None:
    assert pathlib.Path(package, "py.typed") in TRACKED


def test_the_license_is_whole() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert text.split()[:2] == ["Apache", "License"]
    assert "END OF TERMS AND CONDITIONS" in text
