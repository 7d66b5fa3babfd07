"""The background process beside others: what is pipelined, and what goes on when processes end."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import socket
import struct
import time
from typing import BinaryIO

import httpx
import pytest

from tests.integration.rest_server import HALF_PLUS_TWO
from tests.integration.server_process import ServerProcess, children_of
from tests.integration.test_background_process import COUNT, LOW, PATIENT, House, counts, house_of
from tests.integration.test_processes import (
    PREDICT,
    afresh,
    places_of_sockets,
    socket_folders,
    socket_of,
    wait_until,
)

pytestmark = pytest.mark.timeout(3 * PATIENT)
INCREMENT = {"signature_name": "incr_counter_by", "inputs": {"delta": 1.0}}


def request_of(path: str, body: object, **headers: str) -> bytes:
    content = json.dumps(body).encode()
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = "\r\n".join((f"POST {path} HTTP/1.1", "Host: 127.0.0.1", *lines))
    return f"{head}\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content


def next_answer(stream: BinaryIO) -> dict[str, object]:
    status, length = int(stream.readline().split()[1]), 0
    while (line := stream.readline()) != b"\r\n":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    answer: dict[str, object] = json.loads(stream.read(length))
    assert status in (200, 201), answer
    return answer


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> object:
    with house_of(1, tmp_path_factory.mktemp("house")) as house:
        yield house


@pytest.mark.parametrize("pause", [None, 0, 0.002, 0.1])
def test_pipelined_requests_run_where_they_belong(house: House, pause: float | None) -> None:
    """In one write, or one after the other before the first is answered."""
    address = httpx.URL(house.server.http_address)
    low = request_of(
        PREDICT, {"instances": [1.0] * (1 if pause is None else 20_000)}, X_Priority="low"
    )
    requests = [low, request_of(COUNT, INCREMENT), request_of("/v1/sessions", HALF_PLUS_TWO), low]
    get = {"signature_name": "get_counter", "inputs": {}}
    before = afresh(house.server, "POST", COUNT, json=get).json()["outputs"]
    rounds = 6
    for number in range(1, rounds + 1):
        with socket.create_connection((address.host, address.port), PATIENT) as connection:
            if pause is None:
                connection.sendall(b"".join(requests))
            else:
                for each in requests:
                    connection.sendall(each)
                    time.sleep(pause)
            with connection.makefile("rb") as stream:
                answers = [next_answer(stream) for _ in requests]
        assert [len(answers[each]["predictions"]) for each in (0, 3)] == [low.count(b"1.0")] * 2  # type: ignore[arg-type] # a list
        assert answers[1]["outputs"] == before + number
        session = str(answers[2]["session"])
        assert not house.is_there(session)
        assert afresh(house.server, "DELETE", f"/v1/sessions/{session}").status_code == 200
    assert afresh(house.server, "POST", COUNT, json=get).json()["outputs"] == before + rounds


class Load:
    """Predictions of low and of normal priority, on connections that stay open and on new ones."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self._is_over = False
        self._threads = concurrent.futures.ThreadPoolExecutor()
        self._ends = [
            self._threads.submit(self._send, headers, keeps)
            for headers in ({}, LOW)
            for keeps in (False, True)
        ]

    def _send(self, headers: dict[str, str], keeps: bool) -> list[str]:
        refused = []
        client = httpx.Client(base_url=self._server.http_address, timeout=PATIENT)
        while not self._is_over:
            try:
                answer = client.post(PREDICT, json={"instances": [4.0]}, headers=headers)
            except httpx.TransportError:  # of a process that was killed
                keeps, answer = False, None
            if answer is not None and (answer.status_code, answer.content) != (
                200,
                b'{"predictions":[4.0]}',
            ):
                refused.append(answer.text)
            if not keeps:
                client.close()
                client = httpx.Client(base_url=self._server.http_address, timeout=PATIENT)
            time.sleep(0.005)
        client.close()
        return refused

    def end(self) -> list[str]:
        """What was refused."""
        self._is_over = True
        refused = [text for each in self._ends for text in each.result(PATIENT)]
        self._threads.shutdown()
        return refused


def parent_of(process_id: int) -> int:
    text = pathlib.Path(f"/proc/{process_id}/stat").read_text()
    return int(text.rpartition(")")[2].split()[1])


def folder_of(first_process: int) -> str:
    """Return the folder of a server's sockets; others may have one too, for tests run together."""
    for folder in socket_folders():
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            probe.connect(f"{folder}/0.0.http")
            credentials = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            if struct.unpack("3i", credentials)[0] == first_process:
                return folder
    raise AssertionError(f"process {first_process} has no socket")


def test_nothing_is_refused_when_the_first_process_is_killed(tmp_path: pathlib.Path) -> None:
    with house_of(2, tmp_path) as house:
        server, background = house.server, house.process_id
        first = parent_of(background)
        folder = folder_of(first)
        assert first in children_of(server.process.pid)
        load = Load(server)
        time.sleep(0.5)
        os.kill(first, signal.SIGKILL)
        opened = [
            afresh(server, "POST", "/v1/sessions", json=HALF_PLUS_TWO, headers=LOW)
            for _ in range(3)
        ]
        assert {each.status_code for each in opened} == {201}, [each.text for each in opened]
        server.wait_for("another one takes its place")
        wait_until(lambda: afresh(server, "GET", "/readyz").status_code == 200, PATIENT)
        assert load.end() == []
        house.low.close()
        house.low = httpx.Client(base_url=server.http_address, timeout=PATIENT)
        wait_until(house.is_moved, PATIENT)
        assert house.process_id != background
        assert pathlib.Path(folder, "weights").exists()
        # The killed process had the sockets 0.0, and its background process ended with it.
        wait_until(lambda: places_of_sockets(pathlib.Path(folder)) == {"0.1", "1.0", "2.1"})
        house.low.close()


@counts
def test_nothing_is_refused_when_the_background_process_drains(
    processes: int, tmp_path: pathlib.Path
) -> None:
    with house_of(processes, tmp_path) as house:
        idle = house.low
        load = Load(house.server)
        time.sleep(0.5)
        folder = socket_of(parent_of(house.process_id), house.server).parent
        os.kill(house.process_id, signal.SIGTERM)
        house.server.wait_for("The background process (")
        assert load.end() == []
        wait_until(lambda: f"{house.slot}.0" not in places_of_sockets(folder), PATIENT)
        # It was handed back, and not closed.
        assert idle.post(PREDICT, json={"instances": [1.0]}, headers=LOW).status_code == 200
