"""The wheel and the sdist: what is in them, and that a fresh environment serves from the wheel.

Building and installing takes a minute: `make test-package` makes the environment, and runs these
tests; without it they are skipped.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import tarfile
import tomllib
import zipfile

import pytest

from tests.integration.server_process import ROOT, SECONDS, ServerProcess

ENVIRONMENT = ROOT / ".venv-package"
DIST = ENVIRONMENT / "dist"
PACKAGES = ("protos", "runstep", "runtime", "server")
NOT_SHIPPED = {".proto", ".pyc"}


@pytest.fixture(scope="module", autouse=True)
def _made() -> None:
    if not (ENVIRONMENT / "bin" / "runstep").exists():
        pytest.skip("no wheel is built and installed; make test-package does both")


def only(pattern: str) -> pathlib.Path:
    (found,) = DIST.glob(pattern)
    return found


def _is_shipped(name: str) -> bool:
    """Whether a file is part of the packages; documents beside the code are not."""
    return bool(name) and (not name.endswith(".md") or name.startswith("server/console/static/"))


def tracked() -> set[str]:
    """The files of the packages in the repository."""
    listed = subprocess.run(
        ["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name for name in listed.stdout.split("\n") if _is_shipped(name)}


def test_the_wheel_has_every_file_of_the_packages_and_no_other() -> None:
    with zipfile.ZipFile(only("*.whl")) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        notes = {name.rpartition("/")[2] for name in wheel.namelist() if ".dist-info/" in name}
    assert {name for name in names if name.split("/")[0] not in PACKAGES} == set()
    assert tracked() - names == set()
    assert {n for n in names - tracked() if pathlib.Path(n).suffix not in NOT_SHIPPED} == set()
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert {"LICENSE", "METADATA", "entry_points.txt"} <= notes


def test_the_sdist_builds_and_documents() -> None:
    with tarfile.open(only("*.tar.gz")) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    for name in ("LICENSE", "README.md", "SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        assert name in names
    assert tracked() - names == set()
    others = {"tests", "bench", "docs", "examples", "tools", ".venv"}
    assert {name for name in names if name.split("/")[0] in others} == set()


def test_the_version_stands_in_one_place(tmp_path: pathlib.Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"-{version}-" in only("*.whl").name
    printed = run(tmp_path, "-c", "import runstep; print(runstep.__version__)").stdout
    assert printed.strip() == version
    pattern = rf"['\"]{re.escape(version)}['\"]"
    holders = [
        name for name in tracked()
        if name.endswith(".py") and re.search(pattern, (ROOT / name).read_text())
    ]  # fmt: skip
    assert holders == []


def run(folder: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the fresh environment's Python in an empty folder."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(ENVIRONMENT / "bin" / "python"), *arguments],
        cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=True, env=environment,
    )  # fmt: skip


def test_a_fresh_environment_serves_a_model_from_an_empty_folder(tmp_path: pathlib.Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = ServerProcess.__new__(ServerProcess)
    process.follow(
        subprocess.Popen(
            [
                str(ENVIRONMENT / "bin" / "runstep"), "serve", "--model_name=half",
                f"--model_base_path={ROOT / 'examples' / 'models' / 'half_plus_two'}",
                "--host=127.0.0.1",
            ],
            cwd=tmp_path, stderr=subprocess.PIPE, text=True,
            env={**environment, "RUNSTEP_REST__PORT": "free", "RUNSTEP_GRPC__PORT": "free"},
        )
    )  # fmt: skip
    try:
        process.wait_for("Loaded version 1 of model half ")
        script = (
            "import runstep, server, sys\n"
            f"with runstep.Client({process.http_address!r}) as client:\n"
            "    print(client.predict('half', {'x': [1, 2, 5]})['y'].tolist())\n"
            "print(server.__file__)"
        )
        answer, path = run(tmp_path, "-c", script).stdout.splitlines()
    finally:
        process.end()
    assert answer == "[2.5, 3.0, 4.5]"
    assert pathlib.Path(path).is_relative_to(ENVIRONMENT)
    assert list(tmp_path.iterdir()) == []


def test_programs_of_the_wheel(tmp_path: pathlib.Path) -> None:
    program = str(ENVIRONMENT / "bin" / "tensorflow_model_server")
    printed = subprocess.run(
        [program, "--version"], cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS
    )
    assert printed.returncode == 0
    assert printed.stdout.startswith("TensorFlow ModelServer: Runstep ")
    assert run(tmp_path, "-m", "runstep", "version").stdout.startswith("runstep ")


def test_an_op_package_beside_the_wheel_is_served(tmp_path: pathlib.Path) -> None:
    """The package of examples/op_package, which `make test-package` builds and installs."""
    model = tmp_path / "model" / "1"
    run(tmp_path, str(ROOT / "examples" / "op_package" / "make_model.py"), str(model))
    shown = run(tmp_path, "-m", "runstep", "show", str(model)).stdout
    assert (
        "  example (runstep-example-ops 1.0): 2 ops\n    of this model: Clamped, RunningCount"
        in (shown)
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = ServerProcess.__new__(ServerProcess)
    process.follow(
        subprocess.Popen(
            [
                str(ENVIRONMENT / "bin" / "runstep"), "serve", "--model_name=m",
                f"--model_base_path={model.parent}", "--host=127.0.0.1",
            ],
            cwd=tmp_path, stderr=subprocess.PIPE, text=True,
            env={**environment, "RUNSTEP_REST__PORT": "free", "RUNSTEP_GRPC__PORT": "free"},
        )
    )  # fmt: skip
    try:
        process.wait_for("Loaded version 1 of model m ")
        totals = []
        for priority in ("normal", "low", "normal"):
            answer = process.client.post(
                "/v1/models/m:predict",
                json={"inputs": {"x": [-5.0, 0.5, 3.0]}},
                headers={"x-priority": priority},
            )
            assert answer.status_code == 200, answer.text
            outputs = answer.json()["outputs"]
            assert outputs["clamped"] == [-2.0, 0.5, 2.0]
            totals.append(outputs["count"])
        assert totals == [3, 6, 9]
    finally:
        process.end()
