"""Weights that several processes serve: in memory once, whatever happens to their files."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import signal
from collections.abc import Iterator

import numpy as np
import pytest

from bench.soak.models import WIDTH, dense_answer, write_dense
from runtime.api import DataType
from runtime.client import saved_model
from runtime.client.framework.graph import Graph
from runtime.client.ops.construction import placeholder
from runtime.client.ops.math_ops import matmul
from runtime.client.ops.variables import Variable, global_variables_initializer
from runtime.client.session import Session
from tests.integration.server_process import ServerProcess
from tests.integration.test_processes import afresh, is_running, wait_until, workers_of

LARGE_WIDTH = 1024
PREDICT = "/v1/models/dense/versions/{}:predict"
X = np.linspace(-1, 1, WIDTH, dtype=np.float32)[None]


@pytest.fixture
def model(tmp_path: pathlib.Path) -> pathlib.Path:
    write_dense(tmp_path / "dense", 1)
    return tmp_path / "dense"


@pytest.fixture
def large_model(tmp_path: pathlib.Path) -> pathlib.Path:
    """A model that doubles its input, by a product of matrices that the engine packs for itself."""
    with Graph().as_default(), Session() as session:
        x = placeholder(DataType.FLOAT, [None, LARGE_WIDTH], "x")
        y = matmul(x, Variable(2 * np.eye(LARGE_WIDTH, dtype=np.float32)))
        session.run(global_variables_initializer())
        saved_model.simple_save(session, tmp_path / "large" / "1", {"x": x}, {"y": y})
    return tmp_path / "large"


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """The folder for temporary files of the server; its path is not too long for sockets."""
    folder = pathlib.Path("/tmp") / f"weights-{os.getpid()}"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    shutil.rmtree(folder)


@contextlib.contextmanager
def serving(model: pathlib.Path, temporary: pathlib.Path) -> Iterator[ServerProcess]:
    """Serve a model with two processes; nothing may be left of them."""
    process = ServerProcess(
        "--processes=2",
        f"--model_name={model.name}",
        f"--model_base_path={model}",
        "--file_system_poll_wait_seconds=1",
    )
    try:
        process.wait_for("Serving on")
        yield process
    finally:
        workers = workers_of(process)
        process.end()
        wait_until(lambda: not any(map(is_running, workers)))
        wait_until(lambda: not list(temporary.glob("runstep-*")))


@pytest.fixture
def server(model: pathlib.Path, temporary: pathlib.Path) -> Iterator[ServerProcess]:
    with serving(model, temporary) as process:
        yield process


def weights_in(temporary: pathlib.Path) -> list[pathlib.Path]:
    return list(temporary.glob("runstep-*/weights/tensors-*"))


def mapped(process: int, file: pathlib.Path, kind: str) -> int:
    """Return the kilobytes of a kind, such as "Pss", that a process has of a file."""
    total, is_of_file = 0, False
    for line in pathlib.Path(f"/proc/{process}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            is_of_file = line.endswith(str(file))
        elif is_of_file and line.startswith(f"{kind}:"):
            total += int(line.split()[1])
    return total


def check_predictions(server: ServerProcess, version: int = 1) -> None:
    for _ in range(8):  # by both processes, most probably
        answer = afresh(server, "POST", PREDICT.format(version), json={"instances": X.tolist()})
        assert answer.status_code == 200, answer.text
        expected = dense_answer(X) + version
        np.testing.assert_allclose(answer.json()["predictions"], expected, rtol=1e-4, atol=1e-4)


def test_both_processes_have_the_same_pages(server: ServerProcess, temporary: pathlib.Path) -> None:
    (file,) = weights_in(temporary)
    kilobytes = file.stat().st_size >> 10
    assert kilobytes >= 3 * WIDTH * WIDTH * 4 >> 10
    workers = workers_of(server)
    assert len(workers) == 2
    for worker in workers:
        assert mapped(worker, file, "Rss") >= kilobytes
        assert mapped(worker, file, "Pss") <= mapped(worker, file, "Rss") // 2 + 4
        assert mapped(worker, file, "Anonymous") == 0
    check_predictions(server)


def test_the_files_of_the_model_may_be_truncated(
    server: ServerProcess, model: pathlib.Path
) -> None:
    for path in model.rglob("variables.*"):
        os.truncate(path, 0)
    check_predictions(server)


def test_a_version_that_is_unloaded_leaves_nothing(
    server: ServerProcess, model: pathlib.Path, temporary: pathlib.Path
) -> None:
    (file,) = weights_in(temporary)
    write_dense(model, 2)
    wait_until(lambda: file not in weights_in(temporary) and len(weights_in(temporary)) == 1)
    check_predictions(server, 2)
    assert all(mapped(worker, file, "Size") == 0 for worker in workers_of(server))


def test_a_process_that_takes_the_place_of_another_maps_the_same_file(
    server: ServerProcess, temporary: pathlib.Path
) -> None:
    (file,) = weights_in(temporary)
    killed, other = workers_of(server)
    os.kill(killed, signal.SIGKILL)
    # The one that was killed may be listed until its parent has waited for it.
    wait_until(lambda: len(set(workers_of(server)) - {killed, other}) == 1)
    (new,) = set(workers_of(server)) - {killed, other}
    wait_until(lambda: mapped(new, file, "Rss") > 0)
    assert weights_in(temporary) == [file]
    wait_until(lambda: afresh(server, "GET", "/readyz").status_code == 200)
    check_predictions(server)


def test_both_processes_have_the_same_compiled_model(
    large_model: pathlib.Path, temporary: pathlib.Path
) -> None:
    pytest.importorskip("onnxruntime")
    body = {"instances": np.full((2, LARGE_WIDTH), 0.5).tolist()}
    with serving(large_model, temporary) as server:
        workers = workers_of(server)

        def has_once(worker: int, file: pathlib.Path) -> bool:
            resident = mapped(worker, file, "Rss")
            is_whole = resident >= LARGE_WIDTH**2 * 4 >> 10
            return is_whole and mapped(worker, file, "Pss") <= resident // 2 + 4

        def are_shared() -> bool:
            answer = afresh(server, "POST", "/v1/models/large:predict", json=body)
            assert answer.json() == {"predictions": np.ones((2, LARGE_WIDTH)).tolist()}
            files = list(temporary.glob("runstep-*/weights/model-*.arrays"))
            return len(files) == 1 and all(has_once(worker, files[0]) for worker in workers)

        wait_until(are_shared)
        (weights,) = weights_in(temporary)
        kinds = [path.suffix for path in sorted(weights.parent.iterdir())]
        assert kinds == ["", ".arrays", ".onnx", ""]
