"""Processes of a server that hang, as one that is stopped does: it takes no signal but SIGKILL."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import grpc
import httpx
import pytest

import protos as pb
from tests.integration.rest_server import RUN_Y, check_error
from tests.integration.server_process import ROOT, SECONDS, ServerProcess, on_free_ports, stopped
from tests.integration.test_background_process import PATIENT, House, house_of
from tests.integration.test_processes import (
    MODEL,
    PREDICT,
    afresh,
    config_file,
    in_both,
    is_running,
    place,
    slot_of,
    wait_until,
    workers_of,
)

pytestmark = pytest.mark.timeout(3 * PATIENT)
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


def test_a_worker_that_hangs_is_killed_after_the_time_to_drain(tmp_path: pathlib.Path) -> None:
    server = server_with(config_file(tmp_path), "server.supervision.supervisor.RESERVE_SECONDS=1.5")
    try:
        server.wait_for("Serving on")
        by_slot = {slot_of(each, server): each for each in workers_of(server)}
        with stopped(by_slot[1]):
            begun = time.monotonic()
            assert server.stop() == 1
            assert time.monotonic() - begun > 2.5  # drain_seconds is 1
            assert not is_running(by_slot[1])
        process = f"Process 1 ({by_slot[1]})"
        assert f"{process} does not end; it is killed" in "".join(server.log)
        server.wait_for(f"{process} was killed by signal 9 before it had drained")
        assert "Process 0" not in "".join(server.log)
    finally:
        server.end()


def test_a_worker_that_is_killed_before_it_has_drained_shows(tmp_path: pathlib.Path) -> None:
    server = ServerProcess(f"--config={config_file(tmp_path)}")
    try:
        server.wait_for("Serving on")
        by_slot = {slot_of(each, server): each for each in workers_of(server)}
        with stopped(by_slot[1]):
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: not is_running(by_slot[0]))
            os.kill(by_slot[1], signal.SIGKILL)
            assert server.process.wait(SECONDS) == 1
        server.wait_for(f"Process 1 ({by_slot[1]}) was killed by signal 9 before it had drained")
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


def test_a_worker_that_is_stopped_does_not_outlive_its_supervisor(tmp_path: pathlib.Path) -> None:
    server = ServerProcess(f"--config={config_file(tmp_path)}")
    try:
        server.wait_for("Serving on")
        workers = workers_of(server)
        with stopped(workers[0]):
            server.process.kill()
            server.process.wait(SECONDS)
            wait_until(lambda: not any(map(is_running, workers)))
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


def answering_channel(server: ServerProcess) -> grpc.Channel:
    """A channel to a process that answers; a new connection may be another one's."""
    address = server.grpc_address.removeprefix("grpc://")
    while True:
        channel = grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
        with contextlib.suppress(grpc.RpcError):
            channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=1)
            return channel
        channel.close()


def rpc_error(channel: grpc.Channel, session: str) -> tuple[grpc.StatusCode, str]:
    request = pb.RunStepRequest(session_handle=session, fetch=["y:0"]).SerializeToString()
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/tensorflow.MasterService/RunStep")(request, timeout=SECONDS)
    return caught.value.code(), caught.value.details()


def seconds_of(answer: httpx.Response) -> float:
    return answer.elapsed.total_seconds()


def test_who_waits_for_a_process_that_hangs_has_an_answer(tmp_path: pathlib.Path) -> None:
    models = tmp_path / "models"
    shutil.copytree(MODEL, models / "later")
    admin = {"enabled": True, "model_folders": [str(models)]}
    server = ServerProcess(f"--config={config_file(tmp_path, admin=admin)}")
    try:
        server.wait_for("Serving on")
        sessions = {place(each)[0]: each for each in in_both(server)}
        by_slot = {slot_of(each, server): each for each in workers_of(server)}
        step = f"/v1/sessions/{sessions['1']}:run"
        load = "/v2/repository/models/later/load"
        silent = "Process 1 of the server does not answer: its event loop has not run for 10 s"
        threads = concurrent.futures.ThreadPoolExecutor(8)

        def post(path: str, body: object, **headers: str) -> httpx.Response:
            return afresh(server, "POST", path, json=body, headers=headers)

        with stopped(by_slot[1]), threads, answering_channel(server) as channel:
            in_options = {**RUN_Y, "options": {"timeout_in_ms": 1000}}
            late = [
                threads.submit(post, step, RUN_Y, **{"X-Timeout-Ms": "1000"}),
                threads.submit(post, step, in_options, **{"X-Timeout-Ms": "25000"}),
            ]
            quiet = [
                threads.submit(post, step, RUN_Y),
                threads.submit(afresh, server, "GET", step.removesuffix(":run")),
            ]
            changed = threads.submit(post, load, {})
            master = threads.submit(rpc_error, channel, sessions["1"])
            for each in late:
                check_error(each.result(), 504, "DEADLINE_EXCEEDED", "Timed out")
                assert 1 < seconds_of(each.result()) < 5
            for each in quiet:
                check_error(each.result(), 503, "UNAVAILABLE", silent)
            assert (changed.result().status_code, changed.result().json()["error"]) == (503, silent)
            assert master.result() == (grpc.StatusCode.UNAVAILABLE, silent)
            not_ready = afresh(server, "GET", "/readyz")
            assert not_ready.status_code == 503
            assert "process 1 does not answer" in not_ready.text
            # The turn is free for another change, and what is known is not waited for again.
            again = post(load, {})
            assert (again.status_code, again.json()["error"]) == (503, silent)
            assert seconds_of(again) < 8
            assert post("/v1/models/later:predict", {"instances": [1]}).status_code == 404
            assert post(f"/v1/sessions/{sessions['0']}:run", RUN_Y).status_code == 200
            assert post(PREDICT, {"instances": [1]}).status_code == 200
        assert post(step, RUN_Y).status_code == 200
        wait_until(lambda: afresh(server, "GET", "/readyz").status_code == 200)
        assert post(load, {}).status_code == 200
    finally:
        server.end()


def test_a_worker_that_hangs_is_replaced(tmp_path: pathlib.Path) -> None:
    server = server_with(config_file(tmp_path), "server.processes.beats.HUNG_SECONDS=4")
    try:
        server.wait_for("Serving on")
        sessions = {place(each)[0]: each for each in in_both(server)}
        by_slot = {slot_of(each, server): each for each in workers_of(server)}
        with stopped(by_slot[1]):
            wait_until(lambda: not is_running(by_slot[1]))
        path = f"/v1/sessions/{sessions['1']}"
        wait_until(lambda: afresh(server, "GET", path).status_code == 410)
        gone = afresh(server, "POST", f"{path}:run", json=RUN_Y)
        check_error(gone, 410, "CANCELLED", "did not answer for 4 s and was killed")
        server.wait_for(f"Process 1 ({by_slot[1]}) did not answer for 4 s and was killed; another")
        wait_until(lambda: afresh(server, "GET", "/readyz").status_code == 200)
        kept = afresh(server, "POST", f"/v1/sessions/{sessions['0']}:run", json=RUN_Y)
        assert kept.status_code == 200
        assert server.stop() == 0
    finally:
        server.end()


@pytest.mark.parametrize("processes", [1, 2])
def test_requests_of_low_priority_do_not_wait_for_a_process_that_hangs(
    processes: int, tmp_path: pathlib.Path
) -> None:
    low = {"X-Priority": "low"}
    with house_of(processes, tmp_path) as house:
        server = house.server
        session = house.opened()
        assert house.is_there(session)

        def post(path: str, body: object, **headers: str) -> httpx.Response:
            return afresh(server, "POST", path, json=body, headers={**low, **headers})

        with stopped(house.process_id):
            time.sleep(3.2)  # LATE_SECONDS
            answer = post(PREDICT, {"instances": [1]}, **{"X-Timeout-Ms": "5000"})
            assert answer.json() == {"predictions": [2.5]}
            assert seconds_of(answer) < 3
            opened = post("/v1/sessions", {"model": "half_plus_two"})
            assert opened.status_code == 201
            assert not house.is_there(opened.json()["session"])
            step = f"/v1/sessions/{session}:run"
            late = post(step, RUN_Y, **{"X-Timeout-Ms": "1000"})
            check_error(late, 504, "DEADLINE_EXCEEDED", "Timed out")


def test_a_background_process_that_hangs_is_replaced(tmp_path: pathlib.Path) -> None:
    file = config_file(tmp_path, processes=1)
    server = server_with(file, "server.processes.beats.HUNG_SECONDS=5")
    try:
        server.wait_for("Serving on")
        with httpx.Client(base_url=server.http_address, timeout=PATIENT) as client:
            house = House(server, 1, client)
            session = house.opened()
            assert house.is_there(session)
            hung = house.process_id
            with stopped(hung):
                wait_until(lambda: not is_running(hung), PATIENT)
            path = f"/v1/sessions/{session}"
            wait_until(lambda: afresh(server, "GET", path).status_code == 410, PATIENT)
            gone = afresh(server, "POST", f"{path}:run", json=RUN_Y)
            check_error(gone, 410, "CANCELLED", "did not answer for 5 s and was killed")
        with httpx.Client(base_url=server.http_address, timeout=PATIENT) as client:
            house = House(server, 1, client)
            wait_until(lambda: house.is_moved() or time.sleep(0.2), PATIENT)
    finally:
        server.end()
