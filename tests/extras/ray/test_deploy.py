"""Models as replicas of Ray Serve answer as a plain server does, over HTTP and gRPC."""

from __future__ import annotations

import collections
import gzip
import json
import re
import time
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
import httpx
import numpy as np
import pytest
import yaml

import protos as pb
from runtime.api import tensor_from_proto, tensor_to_proto
from tests.extras.ray.deployments import (
    HALF_PLUS_TWO,
    SECONDS,
    Deployment,
    deploy_ray,
    deployed,
)
from tests.integration.server_process import ServerProcess, stopped
from tests.ray_cluster import RayCluster

COUNTER = {"name": "counter", "base_path": "examples/models/counter"}
MODELS = [HALF_PLUS_TWO | {"version_labels": {"stable": 1}}, COUNTER]
PREDICT = "/v1/models/half_plus_two:predict"
INFER = "/v2/models/half_plus_two/infer"
X = {"name": "x", "datatype": "FP32", "shape": [2], "data": [1.0, 5.0]}
INSTANCES = b'{"instances": [1.0, 5.0]}'


@pytest.fixture(scope="module")
def application(
    one_node: RayCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("serve")
    with deployed(one_node, folder, MODELS, deploy_ray, fronts=2) as made:
        yield made


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    file = tmp_path_factory.mktemp("plain") / "server.yaml"
    file.write_text(yaml.safe_dump({"models": MODELS, "console": {"enabled": False}}))
    server = ServerProcess("--config", str(file))
    server.wait_for("Serving on")
    yield server
    server.end()


def parts() -> Iterator[bytes]:
    """A body of unknown length."""
    yield INSTANCES[:10]
    yield INSTANCES[10:]


# method, path, body (JSON, bytes or an iterator), headers
HTTP: list[tuple[str, str, Any, dict[str, str]]] = [
    ("POST", PREDICT, {"instances": [1.0, 5.0]}, {}),
    ("POST", PREDICT, {"inputs": {"x": [1.0]}}, {}),
    ("POST", PREDICT, {"instances": [1.0], "priority": "low"}, {}),
    ("POST", PREDICT, {"instances": [1.0]}, {"x-priority": "low"}),
    ("POST", PREDICT, {"instances": [1.0]}, {"x-priority": "none"}),
    ("POST", PREDICT, {"instances": [1.0]}, {"x-timeout-ms": "soon"}),
    ("POST", PREDICT, gzip.compress(INSTANCES), {"content-encoding": "gzip"}),
    ("POST", PREDICT, b"\x1f\x8bno", {"content-encoding": "gzip"}),
    ("POST", PREDICT, parts, {}),
    ("POST", PREDICT, b"{no", {}),
    ("POST", PREDICT, b"", {}),
    ("POST", PREDICT, {"instances": ["text"]}, {}),
    ("POST", PREDICT, {"instances": [1.0], "signature_name": "none"}, {}),
    ("POST", "/v1/models/half_plus_two/labels/stable:predict", {"instances": [1.0]}, {}),
    ("POST", "/v1/models/half_plus_two/labels/none:predict", {"instances": [1.0]}, {}),
    ("POST", "/v1/models/half_plus_two/versions/1:predict", {"instances": [1.0]}, {}),
    ("POST", "/v1/models/half_plus_two/versions/9:predict", {"instances": [1.0]}, {}),
    ("POST", "/v1/models/half_plus_two:regress", {"examples": [{"x": 1.0}]}, {}),
    ("POST", "/v1/models/half_plus_two:none", {}, {}),
    ("POST", "/v1/models/none:predict", {"instances": [1.0]}, {}),
    ("GET", "/v1/models", None, {}),
    ("GET", "/v1/models/half_plus_two", None, {}),
    ("GET", "/v1/models/half_plus_two/metadata", None, {}),
    ("GET", "/v1/models/none", None, {}),
    ("GET", PREDICT, None, {}),
    ("GET", "/v2", None, {}),
    ("GET", "/v2/health/live", None, {}),
    ("GET", "/v2/health/ready", None, {}),
    ("GET", "/v2/models/counter", None, {}),
    ("GET", "/v2/models/half_plus_two/ready", None, {}),
    ("GET", "/v2/models/half_plus_two/versions/9", None, {}),
    ("GET", "/v2/models/half_plus_two/config", None, {}),
    ("GET", "/v2/models/none", None, {}),
    ("POST", INFER, {"inputs": [X]}, {}),
    ("POST", INFER, {"inputs": [X | {"shape": [3]}]}, {}),
    ("POST", INFER, {"inputs": [X], "parameters": {"priority": "none"}}, {}),
    ("POST", "/v2/models/none/infer", {"inputs": [X]}, {}),
    ("POST", "/v2/repository/index", {}, {}),
    ("POST", "/v2/repository/models/half_plus_two/unload", {}, {}),
    ("PUT", "/v2/models/counter", None, {}),
    ("GET", "/healthz", None, {}),
    ("GET", "/readyz", None, {}),
    ("GET", "/none", None, {}),
]


def answer_to(
    client: httpx.Client, method: str, path: str, body: Any, headers: dict[str, str]
) -> tuple[int, str | None, Any]:
    """The status, the type and the content of a response, without what is new in each."""
    if callable(body):
        body = body()
    elif isinstance(body, dict):
        body = json.dumps(body).encode()
    answer = client.request(method, path, content=body, headers=headers)
    assert len(answer.headers.get_list("x-request-id")) == 1
    content = answer.json() if answer.content else None
    if isinstance(content, dict) and "request_id" in content:
        assert content.pop("request_id") == answer.headers["x-request-id"]
    if path == "/v1/models":
        for model in content["models"]:
            for version in model["versions"]:
                # Which of them are compiled, in which time, and by what, once one was wanted.
                del version["clusters"], version["engine"]
    return answer.status_code, answer.headers.get("content-type"), content


@pytest.mark.parametrize("request_", HTTP, ids=[f"{each[0]}{each[1]}" for each in HTTP])
def test_http_is_that_of_a_plain_server(
    application: Deployment, plain: ServerProcess, request_: tuple[str, str, Any, dict[str, str]]
) -> None:
    assert answer_to(application.client, *request_) == answer_to(plain.client, *request_)


SERVING = "/tensorflow.serving"
V2 = "/inference.GRPCInferenceService"
SPEC = pb.serving.ModelSpec(name="half_plus_two")
X_TENSOR = {"x": tensor_to_proto(np.array([1.0, 5.0], np.float32))}
UNKNOWN = pb.serving.ModelSpec(name="none")


def infer_request(name: str) -> pb.inference.ModelInferRequest:
    request = pb.inference.ModelInferRequest(model_name=name, id="7")
    tensor = request.inputs.add(name="x", datatype="FP32", shape=[2])
    tensor.contents.fp32_contents.extend([1.0, 5.0])
    return request


# path, request, metadata
RPC: list[tuple[str, Any, dict[str, str]]] = [
    (f"{SERVING}.PredictionService/Predict",
     pb.serving.PredictRequest(model_spec=SPEC, inputs=X_TENSOR), {}),
    (f"{SERVING}.PredictionService/Predict",
     pb.serving.PredictRequest(model_spec=SPEC, inputs=X_TENSOR), {"x-priority": "none"}),
    (f"{SERVING}.PredictionService/Predict", pb.serving.PredictRequest(model_spec=SPEC), {}),
    (f"{SERVING}.PredictionService/Predict", pb.serving.PredictRequest(model_spec=UNKNOWN), {}),
    (f"{SERVING}.PredictionService/Predict", pb.serving.PredictRequest(), {}),
    (f"{SERVING}.PredictionService/Predict", b"\x0a\xff", {}),
    (f"{SERVING}.PredictionService/Predict", b"\x0a\x0f\x0a\x0dhalf_plus_two\x12\xff", {}),
    (f"{SERVING}.PredictionService/GetModelMetadata",
     pb.serving.GetModelMetadataRequest(model_spec=SPEC, metadata_field=["signature_def"]), {}),
    (f"{SERVING}.PredictionService/GetModelMetadata",
     pb.serving.GetModelMetadataRequest(model_spec=UNKNOWN), {}),
    (f"{SERVING}.ModelService/GetModelStatus",
     pb.serving.GetModelStatusRequest(model_spec=SPEC), {}),
    (f"{SERVING}.ModelService/GetModelStatus",
     pb.serving.GetModelStatusRequest(model_spec=UNKNOWN), {}),
    (f"{SERVING}.ModelService/HandleReloadConfigRequest", pb.serving.ReloadConfigRequest(), {}),
    (f"{SERVING}.SessionService/SessionRun", pb.serving.SessionRunRequest(model_spec=SPEC), {}),
    (f"{V2}/ServerReady", pb.inference.ServerReadyRequest(), {}),
    (f"{V2}/ModelReady", pb.inference.ModelReadyRequest(name="half_plus_two"), {}),
    (f"{V2}/ModelMetadata", pb.inference.ModelMetadataRequest(name="counter"), {}),
    (f"{V2}/ModelMetadata", pb.inference.ModelMetadataRequest(name="none"), {}),
    (f"{V2}/ModelInfer", infer_request("half_plus_two"), {}),
    (f"{V2}/ModelInfer", infer_request("none"), {}),
    (f"{V2}/RepositoryIndex", pb.inference.RepositoryIndexRequest(), {}),
    (f"{V2}/ModelStreamInfer", infer_request("half_plus_two"), {}),
    (f"{V2}/ModelStreamInfer", infer_request("none"), {}),
    ("/grpc.health.v1.Health/Check", b"", {}),
    ("/grpc.health.v1.Health/Check", b"\x0a\x0dhalf_plus_two", {}),
    ("/grpc.health.v1.Health/Check", b"\x0a\x04none", {}),
]  # fmt: skip


def rpc_answer_to(address: str, path: str, request: Any, metadata: dict[str, str]) -> Any:
    """The bytes of a response, or the code and details of an error."""
    data = request if isinstance(request, bytes) else request.SerializeToString()
    with grpc.insecure_channel(address) as channel:
        try:
            return channel.unary_unary(path)(data, timeout=SECONDS, metadata=[*metadata.items()])
        except grpc.RpcError as error:
            return error.code(), error.details()


@pytest.mark.parametrize("call", RPC, ids=[f"{n}{each[0]}" for n, each in enumerate(RPC)])
def test_grpc_is_that_of_a_plain_server(
    application: Deployment, plain: ServerProcess, call: tuple[str, Any, dict[str, str]]
) -> None:
    expected = rpc_answer_to(plain.grpc_address.removeprefix("grpc://"), *call)
    found = rpc_answer_to(application.grpc_address, *call)
    if call[0].endswith("GetModelMetadata") and isinstance(expected, bytes):
        assert signatures_in(found) == signatures_in(expected)  # maps have no order
    else:
        assert found == expected


def signatures_in(content: bytes) -> Any:
    """The signatures of a GetModelMetadataResponse."""
    metadata = pb.serving.GetModelMetadataResponse.FromString(content).metadata
    return pb.serving.SignatureDefMap.FromString(metadata["signature_def"].value)


def test_the_right_values(application: Deployment) -> None:
    """What both could do wrongly."""
    answer = application.client.post(PREDICT, json={"instances": [1.0, 5.0]})
    assert answer.json() == {"predictions": [2.5, 4.5]}
    content = rpc_answer_to(application.grpc_address, *RPC[0])
    outputs = pb.serving.PredictResponse.FromString(content).outputs
    assert [*tensor_from_proto(outputs["y"])] == [2.5, 4.5]


def test_a_large_body(application: Deployment) -> None:
    count = 3_000_000
    body = b'{"instances": [' + b"1.00000," * (count - 1) + b"1.0]}"
    assert len(body) > 24_000_000
    answer = application.client.post(PREDICT, content=body)
    assert answer.status_code == 200
    assert answer.json()["predictions"] == [2.5] * count


def test_a_deadline(application: Deployment) -> None:
    path, request, _ = RPC[0]
    with grpc.insecure_channel(application.grpc_address) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary(path)(request.SerializeToString(), timeout=0.0001)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def test_any_front_reaches_any_session(application: Deployment) -> None:
    opened = application.client.post("/v1/sessions", json={"model": "counter"})
    assert opened.status_code == 201, opened.text
    path = opened.headers["location"]
    for _ in range(10):  # at both fronts
        with httpx.Client(base_url=application.http_address, timeout=SECONDS) as client:
            assert client.get(path).status_code == 200
            assert len(client.get("/v1/sessions").json()["sessions"]) == 1
    assert application.client.delete(path).status_code == 200


METRICS = "/monitoring/prometheus/metrics"


def anew(application: Deployment, path: str) -> httpx.Response:
    """Get something on a new connection, and so from any of the fronts."""
    with httpx.Client(base_url=application.http_address, timeout=SECONDS) as client:
        answer = client.get(path)
        assert answer.status_code == 200, answer.text
        return answer


def replicas_in(text: str) -> set[str]:
    """The fronts and replicas that labels name."""
    return set(re.findall(r'node="127.0.0.1"(?:,\w+="[^"]*")*,replica="([^"]*)"', text))


def total(page: str, sample: str) -> float:
    """The sum of a metric over all labels; `sample` is a regular expression."""
    lines = (line for line in page.splitlines() if re.match(sample, line))
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def test_every_front_has_the_figures_of_all_fronts_and_replicas(application: Deployment) -> None:
    counts = ":tensorflow:serving:request_count{.*half_plus_two", "runstep_requests_total{.*model_c"
    before = anew(application, METRICS).text
    count = 6
    for _ in range(count):  # at both fronts
        with httpx.Client(base_url=application.http_address, timeout=SECONDS) as client:
            assert client.post(PREDICT, content=INSTANCES).status_code == 200
    names: collections.Counter[str] = collections.Counter()
    for _ in range(4):
        page = anew(application, METRICS).text
        for sample in counts:
            assert total(page, sample) - total(before, sample) == count
        assert total(page, "runstep_replica_up") == 3  # all but the one that answers
        names = collections.Counter(each.partition("#")[0] for each in replicas_in(page))
        assert names == {"front": 2, "model_half_plus_two": 1, "model_counter": 1}
    assert len(replicas_in(anew(application, f"{METRICS}?from=front").text)) == 1
    assert len(replicas_in(anew(application, f"{METRICS}?from=nodes").text)) == 3
    pools = anew(application, "/v1/threadpools").json()["thread_pools"]
    found = [(each["replica"].partition("#")[0], each["node"]) for each in pools
             if each["name"] == "online" and "replica" in each]  # fmt: skip
    assert sorted(found) == sorted((name, "127.0.0.1") for name in names.elements())


def test_a_replica_that_does_not_answer_is_left_out(application: Deployment) -> None:
    (hung,) = application.cluster.actors("model_counter").values()
    with stopped(hung):
        began = time.monotonic()
        page = anew(application, METRICS).text
        assert time.monotonic() - began < 10
    assert total(page, "runstep_replica_up") == 2
    assert total(page, "runstep_replica_up{.*model_counter") == 0


def read_from(application: Deployment, path: str) -> tuple[int, dict[str, Any], float]:
    """The status and the body of a GET, and how many seconds it took."""
    began = time.monotonic()
    answer = application.client.get(path)
    return answer.status_code, answer.json(), time.monotonic() - began


def test_what_reads_from_a_replica_that_hangs(application: Deployment) -> None:
    (hung,) = application.cluster.actors("model_counter").values()
    model = "/v1/models/counter"
    paths = (model, f"{model}/versions/1", f"{model}/metadata", "/v2/models/counter/ready")
    request = pb.serving.GetModelStatusRequest()
    request.model_spec.name = "counter"
    with (
        stopped(hung),
        futures.ThreadPoolExecutor() as threads,
        grpc.insecure_channel(application.grpc_address) as channel,
    ):
        status = channel.unary_unary("/tensorflow.serving.ModelService/GetModelStatus")
        called = status.future(request.SerializeToString(), timeout=SECONDS)
        made = [threads.submit(read_from, application, path) for path in paths]
        for each in made:
            code, answer, seconds = each.result()
            assert code == 503
            assert answer["error"] == "No replica of model counter has answered within 10 s"
            assert seconds < 15  # 10, and those of a machine
        assert called.exception().code() == grpc.StatusCode.UNAVAILABLE
        until_then = {"x-timeout-ms": "1000"}
        answer = application.client.get(model, headers=until_then)
        assert (answer.status_code, answer.json()["code"]) == (504, "DEADLINE_EXCEEDED")
    assert read_from(application, model)[0] == 200


def test_the_console_is_off(application: Deployment) -> None:
    assert application.client.get("/console").status_code == 404
