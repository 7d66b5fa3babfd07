"""The background process: whose requests it answers, what it shares, and how it ends."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import httpx
import numpy as np
import pytest

import protos as pb
from runtime.api import tensor_from_proto, tensor_to_proto
from runtime.foundation.processor_share import HIGHEST_NICE
from tests.integration.access import Authority, bearer, write_keys
from tests.integration.rest_server import (
    HALF_PLUS_TWO,
    RUN_Y,
    check_error,
    encoded,
    endless_graph,
)
from tests.integration.server_process import SECONDS, ServerProcess, children_of, on_free_ports
from tests.integration.test_processes import (
    MODEL,
    PREDICT,
    afresh,
    config_file,
    is_running,
    socket_folders,
    wait_until,
)

COUNTER = pathlib.Path(__file__).parents[1] / "fixtures" / "saved_models" / "counter"
COUNT = "/v1/models/counter:predict"
LOW = {"X-Priority": "low"}
# Seconds; beside busy processes one of nice 19 takes long for everything.
PATIENT = 100
pytestmark = pytest.mark.timeout(3 * PATIENT)


@dataclasses.dataclass
class House:
    """A server and, in slot `slot`, its background process, which has the connection of `low`."""

    server: ServerProcess
    slot: int
    low: httpx.Client

    def post(self, path: str, body: object, **headers: str) -> httpx.Response:
        """A request on the connection of `low`."""
        return self.low.post(path, json=body, headers={**LOW, **headers})

    def predicted(self, value: float, priority: str = "low") -> float:
        answer = self.post(PREDICT, {"instances": [value]}, **{"X-Priority": priority})
        assert answer.status_code == 200, answer.text
        (found,) = answer.json()["predictions"]
        return float(found)

    def opened(self) -> str:
        answer = self.post("/v1/sessions", HALF_PLUS_TWO)
        assert answer.status_code == 201, answer.text
        session: str = answer.json()["session"]
        return session

    def is_there(self, session: str) -> bool:
        """Whether a session is in the background process."""
        return f"-{self.slot}-" in session[22:]

    def is_moved(self) -> bool:
        """Whether sessions that are opened now are in the background process."""
        self.predicted(1)
        session = self.opened()
        answer = self.low.delete(f"/v1/sessions/{session}")
        assert answer.status_code == 200, answer.text
        return self.is_there(session)

    @property
    def process_id(self) -> int:
        """Of the background process."""
        parents = (self.server.process.pid, *children_of(self.server.process.pid))
        (found,) = (
            each
            for parent in parents
            for each in children_of(parent)
            if b"server.supervision.worker" in pathlib.Path(f"/proc/{each}/cmdline").read_bytes()
            and os.getpriority(os.PRIO_PROCESS, each) == HIGHEST_NICE
        )
        return found


def left_of(folders: set[str]) -> list[str]:
    """The folders that exist without a server; those of other tests' servers may be among them."""
    return [each for each in folders - socket_folders() if pathlib.Path(each).exists()]


@contextlib.contextmanager
def house_of(processes: int, folder: pathlib.Path, **settings: Any) -> Iterator[House]:
    shutil.copytree(COUNTER, folder / "counter" / "1")
    models = [
        {"name": "half_plus_two", "base_path": str(MODEL)},
        {"name": "counter", "base_path": str(folder / "counter")},
    ]
    file = config_file(folder, processes=processes, models=models, **settings)
    server = ServerProcess(f"--config={file}")
    children: list[int] = []
    try:
        server.wait_for("Serving on")
        with httpx.Client(base_url=server.http_address, timeout=PATIENT) as client:
            house = House(server, processes, client)
            wait_until(lambda: house.is_moved() or time.sleep(0.2), PATIENT)
            children = [house.process_id, *children_of(server.process.pid)]
            yield house
    finally:
        server.end()
        wait_until(lambda: not any(map(is_running, children)), PATIENT)


counts = pytest.mark.parametrize("processes", [1, 2], ids=["one process", "two processes"])


@pytest.fixture(params=[1, 2], ids=["one process", "two processes"], scope="module")
def house(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    """The house of the tests that leave it as it was."""
    with house_of(request.param, tmp_path_factory.mktemp("house")) as house:
        yield house


def test_a_connection_goes_where_its_requests_belong(house: House) -> None:
    for number in range(6):
        assert house.predicted(number, "normal") == number / 2 + 2
        assert house.predicted(number + 0.5, "low") == (number + 0.5) / 2 + 2
    session = house.opened()
    assert house.is_there(session)
    # As often as this the connection is not handed over.
    for number in range(60):
        assert house.predicted(number, ("normal", "low")[number % 2]) == number / 2 + 2
    answer = house.post(f"/v1/sessions/{session}:run", RUN_Y)
    assert answer.json()["outputs"]["y:0"]["data"] == [2.5, 3.0, 4.5]


def test_one_processor_is_left_to_others(house: House) -> None:
    own = os.sched_getaffinity(0)
    (left,) = own - os.sched_getaffinity(house.process_id) or {None}
    assert left == (min(own) if len(own) > 1 else None)


def test_large_bodies_go_with_their_connections(house: House) -> None:
    values = np.arange(200_000, dtype=np.float32)
    for priority in ("low", "normal", "low"):
        answer = house.post(PREDICT, {"instances": values.tolist()}, **{"X-Priority": priority})
        assert answer.status_code == 200, answer.text
        np.testing.assert_array_equal(answer.json()["predictions"], values / 2 + 2)


def test_sessions_are_reached_from_everywhere(house: House) -> None:
    session, server = house.opened(), house.server
    for options in ({}, {"headers": LOW}):
        for body in (RUN_Y, {**RUN_Y, "priority": "low"}):
            answer = afresh(server, "POST", f"/v1/sessions/{session}:run", json=body, **options)
            assert answer.status_code == 200, answer.text
            assert answer.json()["outputs"]["y:0"]["data"] == [2.5, 3.0, 4.5]
    listed = {
        each["session"]: each for each in afresh(server, "GET", "/v1/sessions").json()["sessions"]
    }
    assert listed[f"{session[:4]}…"]["steps"] == 4
    elsewhere = afresh(server, "POST", "/v1/sessions", json=HALF_PLUS_TWO).json()["session"]
    assert not house.is_there(elsewhere)
    answer = house.post(f"/v1/sessions/{elsewhere}:run", RUN_Y)
    assert answer.json()["outputs"]["y:0"]["data"] == [2.5, 3.0, 4.5]
    assert afresh(server, "DELETE", f"/v1/sessions/{session}").status_code == 200
    gone = house.post(f"/v1/sessions/{session}:run", RUN_Y)
    check_error(gone, 410, "CANCELLED", "has been closed")


def test_what_is_for_the_server_counts_the_background_too(house: House) -> None:
    line = 'runstep_requests_total{api="predict",status="200"} '

    def count() -> float:
        text = afresh(house.server, "GET", "/monitoring/prometheus/metrics").text
        (found,) = (each for each in text.splitlines() if each.startswith(line))
        return float(found.removeprefix(line))

    before = count()
    for number in range(5):
        house.predicted(number)
    assert count() == before + 5
    pools = {
        pool["name"]: pool
        for pool in afresh(house.server, "GET", "/v1/threadpools").json()["thread_pools"]
    }
    assert (pools["online"]["num_threads"], pools["background"]["num_threads"]) == (3, 2)


def test_what_a_step_changes_is_changed_for_all(house: House) -> None:
    if house.slot > 1:
        pytest.skip("each of several processes has a state of its own")
    counts = []
    for number in range(1, 13):
        body = {"signature_name": "incr_counter_by", "inputs": {"delta": 1.0}}
        answer = house.post(COUNT, body, **{"X-Priority": ("normal", "low")[number % 2]})
        assert answer.status_code == 200, answer.text
        counts.append(answer.json()["outputs"])
    assert counts == [*range(1, 13)]


def test_calls_by_grpc_reach_a_session_there(house: House) -> None:
    session = house.opened()
    request = pb.RunStepRequest(session_handle=session, fetch=["y:0"])
    request.feed.add(name="x:0", tensor=tensor_to_proto(np.float32([4])))
    address = house.server.grpc_address.removeprefix("grpc://")
    with grpc.insecure_channel(address) as channel:
        run = channel.unary_unary("/tensorflow.MasterService/RunStep")
        answer = pb.RunStepResponse.FromString(run(request.SerializeToString(), timeout=SECONDS))
    assert tensor_from_proto(answer.tensor[0].tensor).tolist() == [4.0]


def predicted_by_grpc(house: House, count: int, priority: str, seconds: float = SECONDS) -> float:
    """The last prediction for so many numbers."""
    request = pb.serving.PredictRequest()
    request.model_spec.name = "half_plus_two"
    request.inputs["x"].CopyFrom(tensor_to_proto(np.arange(count, dtype=np.float32)))
    answer = pb.serving.PredictResponse.FromString(
        called(house, "tensorflow.serving.PredictionService/Predict", request, priority, seconds)
    )
    return float(tensor_from_proto(answer.outputs["y"])[-1])


def inferred_by_grpc(house: House, count: int, priority: str, seconds: float = SECONDS) -> float:
    """The same by the Open Inference Protocol."""
    request = pb.inference.ModelInferRequest(model_name="half_plus_two")
    request.inputs.add(name="x", datatype="FP32", shape=[count])
    request.raw_input_contents.append(np.arange(count, dtype=np.float32).tobytes())
    answer = pb.inference.ModelInferResponse.FromString(
        called(house, "inference.GRPCInferenceService/ModelInfer", request, priority, seconds)
    )
    return float(np.frombuffer(answer.raw_output_contents[0], np.float32)[-1])


def called(house: House, method: str, request: Any, priority: str, seconds: float) -> bytes:
    address = house.server.grpc_address.removeprefix("grpc://")
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary(f"/{method}")
        metadata = (("x-priority", priority),)
        answer: bytes = call(request.SerializeToString(), timeout=seconds, metadata=metadata)
        return answer


@pytest.mark.parametrize("predict", [predicted_by_grpc, inferred_by_grpc])
def test_large_predictions_by_grpc_are_answered_there(
    house: House, predict: Callable[..., float]
) -> None:
    count, expected = 40_001, 20_002.0
    wait_until(lambda: predict(house, count, "low") == expected, PATIENT)

    def waits_for_background() -> bool:
        try:
            predict(house, count, "low", seconds=1)
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            return True
        return False  # by a process that looks at its model for the first time

    os.kill(house.process_id, signal.SIGSTOP)
    try:
        wait_until(waits_for_background, PATIENT)
        assert predict(house, count, "normal") == expected
        assert predict(house, 11, "low") == 7.0  # a small one
    finally:
        os.kill(house.process_id, signal.SIGCONT)
    assert predict(house, count, "low") == expected


class Port:
    """The gRPC port of the background process of a server, whose first process it belongs to."""

    def __init__(self, server: ServerProcess) -> None:
        line = server.wait_for("gRPC of low priority has port")
        self.address = f"127.0.0.1:{line.split()[-1]}"

    def call(
        self, method: str, request: Any, priority: str | None = None, seconds: float = PATIENT
    ) -> bytes:
        with grpc.insecure_channel(self.address) as channel:
            metadata = () if priority is None else (("x-priority", priority),)
            answer: bytes = channel.unary_unary(f"/{method}")(
                request.SerializeToString(),
                timeout=seconds,
                metadata=metadata,
                wait_for_ready=True,
            )
            return answer

    def predict(
        self, value: float, priority: str | None = None, model: str = "half_plus_two"
    ) -> float:
        request = pb.serving.PredictRequest()
        request.model_spec.name = model
        request.inputs["x"].CopyFrom(tensor_to_proto(np.float32([value])))
        data = self.call("tensorflow.serving.PredictionService/Predict", request, priority)
        (found,) = pb.serving.PredictResponse.FromString(data).outputs.values()
        return float(tensor_from_proto(found).ravel()[0])

    def error_of(self, *arguments: Any, **named: Any) -> tuple[grpc.StatusCode, str]:
        with pytest.raises(grpc.RpcError) as caught:
            self.predict(*arguments, **named)
        return caught.value.code(), caught.value.details()


@counts
def test_the_background_process_has_a_grpc_port(processes: int, tmp_path: pathlib.Path) -> None:
    with house_of(processes, tmp_path, grpc={"background_port": "free"}) as house:
        port = Port(house.server)
        assert port.predict(3) == 3.5
        assert port.predict(3, "low") == 3.5
        infer = pb.inference.ModelInferRequest(model_name="half_plus_two")
        infer.inputs.add(name="x", datatype="FP32", shape=[1])
        infer.raw_input_contents.append(np.float32([5]).tobytes())
        answer = port.call("inference.GRPCInferenceService/ModelInfer", infer)
        outputs = pb.inference.ModelInferResponse.FromString(answer).raw_output_contents
        assert np.frombuffer(outputs[0], np.float32).tolist() == [4.5]

        code, text = port.error_of(3, "normal")
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert text == (
            "This port is for calls of priority low, got 'normal'; others belong to the server's "
            "gRPC port"
        )
        code, text = port.error_of(3, model="counter")
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert text.startswith("Predictions of model counter may change or keep state")
        code, text = port.error_of(3, model="missing")
        assert code is grpc.StatusCode.NOT_FOUND
        with pytest.raises(grpc.RpcError) as caught:
            port.call("tensorflow.MasterService/ListDevices", pb.ListDevicesRequest())
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED

        stopped = house.process_id
        os.kill(stopped, signal.SIGSTOP)
        try:  # nobody else answers, and normal predictions do not wait for it
            with pytest.raises(grpc.RpcError) as caught:
                port.call(
                    "inference.GRPCInferenceService/ServerLive",
                    pb.inference.ServerLiveRequest(),
                    seconds=1,
                )
            assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            assert predicted_by_grpc(house, 3, "normal") == 3.0
        finally:
            os.kill(stopped, signal.SIGCONT)
        os.kill(stopped, signal.SIGKILL)
        assert port.predict(7) == 5.5  # by the next process, on the same port
        assert house.server.stop() == 0


def test_the_background_port_requires_keys_and_tls_as_the_other_one(tmp_path: pathlib.Path) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue("localhost", ip="127.0.0.1")
    key, certificate = (pathlib.Path(path).read_text() for path in (issued.key, issued.certificate))
    (tmp_path / "ssl.config").write_text(f"server_key: {key!r} server_cert: {certificate!r}")
    file = config_file(
        tmp_path,
        processes=1,
        grpc={"background_port": "free", "ssl_config_file": str(tmp_path / "ssl.config")},
        access={"keys_file": write_keys(tmp_path / "keys.yaml")},
    )
    request = pb.serving.PredictRequest()
    request.model_spec.name = "half_plus_two"
    request.inputs["x"].CopyFrom(tensor_to_proto(np.float32([3])))
    server = ServerProcess(f"--config={file}")
    try:
        address = Port(server).address
        trusted = grpc.ssl_channel_credentials((tmp_path / "ca.pem").read_bytes())
        with grpc.secure_channel(address, trusted) as channel:
            call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")

            def answer(headers: dict[str, str]) -> Any:
                metadata = tuple(headers.items())
                data = call(
                    request.SerializeToString(),
                    timeout=PATIENT,
                    metadata=metadata,
                    wait_for_ready=True,
                )
                (found,) = pb.serving.PredictResponse.FromString(data).outputs.values()
                return tensor_from_proto(found).tolist()

            assert answer(bearer("alice")) == [3.5]
            for headers, code in (
                ({}, grpc.StatusCode.UNAUTHENTICATED),
                ({"authorization": "Bearer wrong"}, grpc.StatusCode.UNAUTHENTICATED),
                (bearer("bob"), grpc.StatusCode.PERMISSION_DENIED),  # he may not predict
            ):
                with pytest.raises(grpc.RpcError) as caught:
                    answer(headers)
                assert caught.value.code() is code
        with grpc.insecure_channel(address) as plain, pytest.raises(grpc.RpcError) as caught:
            call = plain.unary_unary("/tensorflow.serving.PredictionService/Predict")
            call(
                request.SerializeToString(),
                timeout=SECONDS,
                metadata=tuple(bearer("alice").items()),
            )
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    finally:
        server.end()


def test_a_background_port_that_is_taken_or_impossible_is_an_error(tmp_path: pathlib.Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        for changed, expected in (
            (
                {"grpc": {"background_port": number}},
                f"Cannot listen on 127.0.0.1:{number} for gRPC",
            ),
            (
                {"grpc": {"background_port": "free"}, "priorities": {"normal": "online"}},
                "grpc.background_port requires a background process",
            ),
        ):
            for processes in (1, 2):
                file = config_file(tmp_path, processes=processes, **changed)
                ended = subprocess.run(
                    [sys.executable, "-m", "server.main", "serve", f"--config={file}"],
                    env=on_free_ports(), capture_output=True, text=True, timeout=PATIENT,
                )  # fmt: skip
                assert ended.returncode == 1
                assert expected in ended.stderr
                assert "Traceback" not in ended.stderr


def test_predictions_alone_have_the_process_started(tmp_path: pathlib.Path) -> None:
    models = [{"name": "half_plus_two", "base_path": str(MODEL)}]
    server = ServerProcess(f"--config={config_file(tmp_path, models=models)}")
    try:
        server.wait_for("Serving on")
        with httpx.Client(base_url=server.http_address, timeout=PATIENT, headers=LOW) as client:
            house = House(server, 1, client)

            def is_started() -> bool:
                assert house.predicted(1) == 2.5
                with contextlib.suppress(ValueError):  # none is found yet
                    return house.process_id > 0
                return False

            wait_until(lambda: is_started() or time.sleep(0.2), PATIENT)
    finally:
        server.end()


@counts
def test_a_background_process_that_is_killed_is_replaced(
    processes: int, tmp_path: pathlib.Path
) -> None:
    with house_of(processes, tmp_path) as house:
        session, before = house.opened(), house.process_id
        assert house.is_there(session)
        os.kill(before, signal.SIGKILL)
        path = f"/v1/sessions/{session}"
        wait_until(lambda: afresh(house.server, "GET", path).status_code == 410)
        house.low.close()
        house.low = httpx.Client(base_url=house.server.http_address, timeout=PATIENT)
        assert house.predicted(1) == 2.5  # at once, by another process
        gone = house.post(f"{path}:run", RUN_Y)
        check_error(gone, 410, "CANCELLED", "was killed by signal 9")
        assert afresh(house.server, "GET", "/readyz").status_code == 200
        wait_until(lambda: house.is_moved() or time.sleep(0.2), PATIENT)
        assert house.process_id != before
        house.low.close()


@counts
@pytest.mark.parametrize("as_protobuf", [False, True], ids=["JSON", "protobuf"])
def test_the_first_session_of_low_priority_waits_for_the_process(
    processes: int, as_protobuf: bool, tmp_path: pathlib.Path
) -> None:
    models = [{"name": "half_plus_two", "base_path": str(MODEL)}]
    server = ServerProcess(f"--config={config_file(tmp_path, processes=processes, models=models)}")
    try:
        server.wait_for("Serving on")
        with httpx.Client(base_url=server.http_address, timeout=PATIENT) as client:
            house = House(server, processes, client)
            if as_protobuf:
                graph = pb.CreateSessionRequest(graph_def=endless_graph()).SerializeToString()
                headers = {**LOW, "Content-Type": "application/x-protobuf"}
                opened = client.post("/v1/sessions", content=graph, headers=headers)
                session = pb.CreateSessionResponse.FromString(opened.content).session_handle
            else:
                session = house.opened()
            assert house.is_there(session)
            described = afresh(server, "GET", f"/v1/sessions/{session}").json()
            assert described["session"] == session
            normal = afresh(server, "POST", "/v1/sessions", json=HALF_PLUS_TWO).json()["session"]
            assert not house.is_there(normal)
            wrong = house.post("/v1/sessions", {"model": "none"})
            check_error(wrong, 404, "NOT_FOUND", "none")
    finally:
        server.end()


@counts
def test_steps_drain_with_the_server(processes: int, tmp_path: pathlib.Path) -> None:
    with house_of(processes, tmp_path) as house:
        folders = socket_folders()
        opened = house.post("/v1/sessions", {"graph_def": encoded(endless_graph())})
        session = opened.json()["session"]
        path = f"/v1/sessions/{session}"
        assert house.is_there(session)
        with concurrent.futures.ThreadPoolExecutor() as threads:
            body = {"feeds": {"start": 1.0}, "fetches": ["loop"]}
            step = threads.submit(house.post, f"{path}:run", body)
            wait_until(
                lambda: afresh(house.server, "GET", path).json()["state"] == "RUNNING", PATIENT
            )
            assert house.server.stop() == 0
            assert step.result(SECONDS).status_code == 499
        assert folders
        wait_until(lambda: not left_of(folders))


@counts
def test_the_background_process_ends_with_the_server(
    processes: int, tmp_path: pathlib.Path
) -> None:
    with house_of(processes, tmp_path) as house:
        folders = socket_folders()
        process_id = house.process_id
        house.server.process.kill()
        house.server.process.wait(SECONDS)
        wait_until(lambda: not is_running(process_id), PATIENT)
        wait_until(lambda: not left_of(folders))
