"""Queue, wait and run of every step of every front are on the metrics page of a real process."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator

import grpc
import httpx
import numpy as np
import pytest
from google.protobuf.message import Message

import protos as pb
from runtime.api import SessionOptions, new_session, tensor_to_proto
from server.rest.session_docs import half_plus_two_graph
from tests.conformance.case import Graph
from tests.integration.promql import read_page
from tests.integration.rest_server import HALF_PLUS_TWO, RUN_Y, encoded
from tests.integration.rpc_server import example_input, predict_request
from tests.integration.server_process import ROOT, ServerProcess, children_of

MODEL = ROOT / "tests" / "fixtures" / "saved_models" / "half_plus_two"
PREDICTION = "/tensorflow.serving.PredictionService/"
HISTOGRAMS = ("queue_steps", "wait_seconds", "run_seconds")
X = np.array([1.0], np.float32)
LOW = (("x-priority", "low"),)
Labels = tuple[str, str, str]  # pool, priority, model
NORMAL: Labels = ("online", "normal", "m")
LOW_M: Labels = ("background", "low", "m")
SESSION: Labels = ("online", "normal", "")
LOW_SESSION: Labels = ("background", "low", "")
Calls = Callable[[ServerProcess], int]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("histograms")
    models = []
    for name, batching in (("m", None), ("batched", {"mode": "parameters"})):
        shutil.copytree(MODEL, folder / name / "1")
        models.append({"name": name, "base_path": str(folder / name), "batching": batching})
    path = folder / "server.yaml"
    path.write_text(json.dumps({"models": models}))
    process = ServerProcess(f"--config={path}")
    try:
        process.wait_for("Serving on")
        yield process
    finally:
        process.end()


def counts(server: ServerProcess) -> dict[str, dict[Labels, float]]:
    """The counts of each histogram by its labels."""
    page = read_page(server.client.get("/monitoring/prometheus/metrics").text)
    return {
        histogram: {
            (found["pool"], found["priority"], found["model"]): value
            for labels, value in page.get(f"runstep_step_{histogram}_count", {}).items()
            for found in [dict(labels)]
        }
        for histogram in HISTOGRAMS
    }


def post(server: ServerProcess, path: str, body: object, **headers: str) -> httpx.Response:
    answer = server.client.post(path, json=body, headers=headers)
    assert answer.is_success, answer.text
    return answer


def predict(model: str, times: int = 1, priority: str = "normal") -> Calls:
    def calls(server: ServerProcess) -> int:
        for _ in range(times):
            headers = {"X-Priority": priority} if priority != "normal" else {}
            post(server, f"/v1/models/{model}:predict", {"instances": [1.0]}, **headers)
        return times

    return calls


def examples(call: str, signature: str) -> Calls:
    def calls(server: ServerProcess) -> int:
        body = {"signature_name": signature, "examples": [{"x": 1.0}]}
        post(server, f"/v1/models/m:{call}", body)
        return 1

    return calls


def rpc(path: str, request: Message, metadata: tuple[tuple[str, str], ...] = ()) -> Calls:
    def calls(server: ServerProcess) -> int:
        with grpc.insecure_channel(server.grpc_address.removeprefix("grpc://")) as channel:
            method = channel.unary_unary(path)
            assert method(request.SerializeToString(), metadata=metadata)
        return 1

    return calls


def with_spec(request: Message, signature: str) -> Message:
    request.model_spec.name, request.model_spec.signature_name = "m", signature  # type: ignore[attr-defined] # all of them have one
    return request


def multi_inference() -> Message:
    request = pb.serving.MultiInferenceRequest(input=example_input(1.0))
    for kind in "classify", "regress":
        task = request.tasks.add(method_name=f"tensorflow/serving/{kind}")
        with_spec(task, f"{kind}_x_to_y")
    return request


def session_run() -> Message:
    request = pb.serving.SessionRunRequest(fetch=["y"], tensor_name_is_alias=True)
    request.model_spec.name = "m"
    request.feed.add(name="x", tensor=tensor_to_proto(X))
    return request


def model_infer() -> Message:
    request = pb.inference.ModelInferRequest(model_name="m")
    request.inputs.add(name="x", datatype="FP32", shape=[1])
    request.raw_input_contents.append(X.tobytes())
    return request


INFER = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1.0]}]}


def infer(**parameters: object) -> Calls:
    def calls(server: ServerProcess) -> int:
        post(server, "/v2/models/m/infer", INFER | {"parameters": parameters})
        return 1

    return calls


def infer_binary(server: ServerProcess) -> int:
    described = {"name": "x", "datatype": "FP32", "shape": [1]}
    header = json.dumps({"inputs": [described | {"parameters": {"binary_data_size": 4}}]}).encode()
    answer = server.client.post(
        "/v2/models/m/infer",
        content=header + X.tobytes(),
        headers={"Inference-Header-Content-Length": str(len(header))},
    )
    assert answer.status_code == 200, answer.text
    return 1


def opened(server: ServerProcess, body: object = HALF_PLUS_TWO) -> str:
    return post(server, "/v1/sessions", body).headers["location"]


def session_steps(**more: object) -> Calls:
    def calls(server: ServerProcess) -> int:
        session = opened(server)
        for _ in range(30):  # some on the pool, then at once
            post(server, f"{session}:run", RUN_Y | more)
        return 30

    return calls


def session_callable(server: ServerProcess) -> int:
    session = opened(server)
    options = {"options": {"feed": ["x:0"], "fetch": ["y:0"]}}
    call = post(server, f"{session}:makeCallable", options).json() | {"feeds": [[1.0]]}
    post(server, f"{session}:runCallable", call)
    return 1


def partial_run(server: ServerProcess) -> int:
    session = opened(server)
    names = {"feeds": ["x:0"], "fetches": ["y:0"]}
    handle = post(server, f"{session}:partialRunSetup", names).json()
    post(server, f"{session}:partialRun", RUN_Y | handle)
    return 1


def target(scheme: str) -> Calls:
    def calls(server: ServerProcess) -> int:
        address = server.grpc_address if scheme == "grpc" else server.http_address
        session = new_session(SessionOptions(address))
        session.create(half_plus_two_graph())
        for _ in range(3):
            session.run({"x:0": X}, ["y:0"])
        session.close()
        return 3

    return calls


def in_child_process(server: ServerProcess) -> int:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    for _ in range(20):
        x = graph.add("MatrixInverse", x)[0]
    graph.add("Identity", x, name="y")
    session = opened(server, {"graph_def": encoded(graph.graph_def)})
    body = {"feeds": {"x": np.eye(64).tolist()}, "fetches": ["y"], "priority": "low"}
    times = 0
    while not children_of(server.process.pid):
        post(server, f"{session}:run", body)
        times += 1
    post(server, f"{session}:run", body)
    return times + 1


FRONTS: dict[str, tuple[Calls, Labels]] = {
    "predict": (predict("m"), NORMAL),
    "predict, also at once": (predict("m", 30), NORMAL),
    "predict, low": (predict("m", priority="low"), LOW_M),
    "predict, batched": (predict("batched"), ("online", "normal", "batched")),
    "predict, batched, low": (
        predict("batched", priority="low"), ("background", "low", "batched"),
    ),
    "classify": (examples("classify", "classify_x_to_y"), NORMAL),
    "regress": (examples("regress", "regress_x_to_y"), NORMAL),
    "Predict": (rpc(PREDICTION + "Predict", predict_request("m", x=X)), NORMAL),
    "Predict, low": (rpc(PREDICTION + "Predict", predict_request("m", x=X), LOW), LOW_M),
    "Predict, batched": (
        rpc(PREDICTION + "Predict", predict_request("batched", x=X)),
        ("online", "normal", "batched"),
    ),
    "Classify": (
        rpc(
            PREDICTION + "Classify",
            with_spec(
                pb.serving.ClassificationRequest(input=example_input(1.0)), "classify_x_to_y"
            ),
        ),
        NORMAL,
    ),
    "Regress": (
        rpc(
            PREDICTION + "Regress",
            with_spec(pb.serving.RegressionRequest(input=example_input(1.0)), "regress_x_to_y"),
        ),
        NORMAL,
    ),
    "MultiInference": (rpc(PREDICTION + "MultiInference", multi_inference()), NORMAL),
    "SessionRun": (rpc("/tensorflow.serving.SessionService/SessionRun", session_run()), NORMAL),
    "infer": (infer(), NORMAL),
    "infer, low": (infer(priority="low"), LOW_M),
    "infer, binary": (infer_binary, NORMAL),
    "ModelInfer": (rpc("/inference.GRPCInferenceService/ModelInfer", model_infer()), NORMAL),
    "ModelInfer, low": (
        rpc("/inference.GRPCInferenceService/ModelInfer", model_infer(), LOW), LOW_M,
    ),
    "run": (session_steps(), SESSION),
    "run, low": (session_steps(priority="low"), LOW_SESSION),
    "run, low, in a child process": (in_child_process, LOW_SESSION),
    "run, by index": (session_steps(options={"inter_op_thread_pool": 1}), ("", "pool", "")),
    "runCallable": (session_callable, SESSION),
    "partialRun": (partial_run, SESSION),
    "grpc:// target": (target("grpc"), SESSION),
    "http:// target": (target("http"), SESSION),
}  # fmt: skip


@pytest.mark.parametrize("front", FRONTS)
def test_each_step_is_once_in_each_histogram(front: str, server: ServerProcess) -> None:
    calls, labels = FRONTS[front]
    before = counts(server)
    times = calls(server)
    after = counts(server)
    for histogram in HISTOGRAMS:
        grown = {
            key: value - before[histogram].get(key, 0.0)
            for key, value in after[histogram].items()
            if value != before[histogram].get(key, 0.0)
        }
        assert grown == {labels: times}, histogram
