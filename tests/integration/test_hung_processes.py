"""Processes of a server that hang, as one that is stopped does: it takes no signal but SIGKILL."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.integration.server_process import ROOT, SECONDS, ServerProcess, on_free_ports
from tests.integration.test_background_process import PATIENT, house_of
from tests.integration.test_processes import (
    config_file,
    is_running,
    slot_of,
    wait_until,
    workers_of,
)

pytestmark = pytest.mark.timeout(5 * PATIENT)
# Constants of a server's modules that tests can't wait for.
_SCRIPT = """
import importlib, sys
for each in {constants!r}:
    name, _, value = each.partition("=")
    module, _, constant = name.rpartition(".")
    setattr(importlib.import_module(module), constant, float(value))
from server.main import main
sys.exit(main(sys.argv[1:]))
"""


def server_with(file: pathlib.Path, *constants: str) -> ServerProcess:
    """A server in which constants, such as "server.module.NAME=1", have other values."""
    server = ServerProcess.__new__(ServerProcess)
    script = _SCRIPT.format(constants=constants)
    command = [sys.executable, "-c", script, "serve", f"--config={file}"]
    server.follow(
        subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env=on_free_ports())
    )
    return server


@contextlib.contextmanager
def stopped(process_id: int) -> Iterator[None]:
    """A process that is stopped, and goes on afterwards if it is still there."""
    os.kill(process_id, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process_id, signal.SIGCONT)


def test_a_worker_that_hangs_is_killed_after_the_time_to_drain(tmp_path: pathlib.Path) -> None:
    server = server_with(config_file(tmp_path), "server.supervision.supervisor.RESERVE_SECONDS=1.5")
    try:
        server.wait_for("Serving on")
        by_slot = {slot_of(each, server): each for each in workers_of(server)}
        with stopped(by_slot[1]):
            begun = time.monotonic()
            assert server.stop() == 0
            assert time.monotonic() - begun > 2.5  # drain_seconds is 1
            assert not is_running(by_slot[1])
        assert f"Process 1 ({by_slot[1]}) does not end; it is killed" in "".join(server.log)
        assert "Process 0" not in "".join(server.log)
    finally:
        server.end()


def test_a_second_signal_ends_a_worker_that_hangs(tmp_path: pathlib.Path) -> None:
    server = ServerProcess(f"--config={config_file(tmp_path)}")
    try:
        server.wait_for("Serving on")
        workers = workers_of(server)
        with stopped(workers[0]):
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: not is_running(workers[1]))
            assert is_running(workers[0])
            assert server.stop() == 0
            assert not is_running(workers[0])
    finally:
        server.end()


def test_a_second_signal_ends_a_background_process_that_hangs(tmp_path: pathlib.Path) -> None:
    with house_of(1, tmp_path) as house, stopped(house.process_id):
        hung = house.process_id
        house.server.process.send_signal(signal.SIGTERM)
        house.server.wait_for("Draining")
        time.sleep(0.5)  # it drains for longer
        house.server.process.send_signal(signal.SIGTERM)
        house.server.process.wait(SECONDS)
        wait_until(lambda: not is_running(hung), 3)
