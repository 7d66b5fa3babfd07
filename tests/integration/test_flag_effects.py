"""Flags of TensorFlow Serving whose effect shows in requests to a real process."""

from __future__ import annotations

import asyncio
import functools
import json
import pathlib
import re
import shutil
import time
from collections.abc import Callable, Iterator

import grpc
import httpx
import numpy as np
import pytest

import protos as pb
from runtime.api import tensor_to_proto
from server.commands.model_server_flags import FLAGS
from server.steps.step_runner import OFF_LOOP_BYTES
from tests.integration.server_process import ROOT, SECONDS, ServerProcess

HALF_PLUS_TWO = ROOT / "tests" / "fixtures" / "saved_models" / "half_plus_two"
PREDICT = "/v1/models/half:predict"


def until(is_so: Callable[[], bool]) -> None:
    """Ask again and again, each time with a request, until it is so."""
    end = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < end, "it never was so"


def start(*flags: str) -> Iterator[ServerProcess]:
    process = ServerProcess(*flags)
    try:
        process.wait_for("Serving on")
        yield process
    finally:
        process.end()


def tagged(folder: pathlib.Path, *tags: str) -> pathlib.Path:
    """A copy of half_plus_two, version 1, with other tags."""
    shutil.copytree(HALF_PLUS_TWO, folder / "1")
    path = folder / "1" / "saved_model.pb"
    model = pb.SavedModel.FromString(path.read_bytes())
    model.meta_graphs[0].meta_info_def.tags[:] = tags
    path.write_bytes(model.SerializeToString())
    return folder


def predict_over_grpc(server: ServerProcess, values: np.ndarray) -> pb.serving.PredictResponse:
    request = pb.serving.PredictRequest()
    request.model_spec.name = "half"
    request.inputs["x"].CopyFrom(tensor_to_proto(values))
    with grpc.insecure_channel(server.grpc_address.removeprefix("grpc://")) as channel:
        method = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
        answer = method(request.SerializeToString(), timeout=SECONDS)
    return pb.serving.PredictResponse.FromString(answer)


def pool_threads(server: ServerProcess, name: str = "online") -> int:
    pools = server.client.get("/v1/threadpools").json()["thread_pools"]
    return next(int(pool["num_threads"]) for pool in pools if pool["name"] == name)


class Configured:
    """A process with a model config file, which `serve_also` extends."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.entries: list[str] = []
        self.file = folder / "models.config"
        self.serve_also("half", tagged(folder / "half", "a", "b"), "labels")

    def serve_also(self, name: str, base_path: pathlib.Path, *labels: str) -> None:
        """Write the file with one more model; each label is at version 99, which is not there."""
        texts = [f'version_labels {{ key: "{label}" value: 99 }}' for label in labels]
        self.entries.append(
            f'config {{ name: "{name}" base_path: "{base_path}" model_platform: "tensorflow" '
            f"{' '.join(texts)} }}"
        )
        self.file.write_text(f"model_config_list {{ {' '.join(self.entries)} }}")


@pytest.fixture
def configured(tmp_path: pathlib.Path) -> Configured:
    return Configured(tmp_path)


@pytest.fixture
def server(configured: Configured) -> Iterator[ServerProcess]:
    extra = configured.folder / "half" / "1" / "assets.extra"
    extra.mkdir(exist_ok=True)
    (extra / "tf_serving_warmup_requests").write_bytes(b"no records: the load would fail")
    yield from start(
        f"--model_config_file={configured.file}",
        "--model_config_file_poll_wait_seconds=1",
        "--allow_version_labels_for_unavailable_models",
        "--max_num_load_retries=2",
        "--load_retry_interval_micros=1000",
        "--saved_model_tags=b,a",
        "--enable_model_warmup=false",
        "--enable_serialization_as_tensor_content",
        "--rest_api_enable_cors_support",
        "--grpc_channel_arguments=grpc.max_receive_message_length=5000,grpc.optimization_target=x",
        "--tensorflow_inter_op_parallelism=3",
        "--tensorflow_intra_op_parallelism=2",
    )


def test_models_of_other_tags_labels_retries_and_the_polled_file(
    server: ServerProcess, configured: Configured
) -> None:
    client = server.client
    assert client.post(PREDICT, json={"instances": [2.0]}).json() == {"predictions": [3.0]}

    broken = configured.folder / "broken"
    (broken / "5").mkdir(parents=True)
    (broken / "5" / "saved_model.pb").write_bytes(b"broken")
    configured.serve_also("broken", broken)
    configured.serve_also("again", tagged(configured.folder / "again", "a", "b"), "canary")
    until(lambda: client.get("/v1/models/again").status_code == 200)
    until(
        lambda: (
            client.post("/v1/models/again:predict", json={"instances": [2.0]}).status_code == 200
        )
    )
    unknown = client.post("/v1/models/again/labels/canary:predict", json={"instances": [2.0]})
    assert unknown.status_code == 404  # the label leads to a version that is not there
    assert "Kept the models as they were" not in "".join(server.log)

    def states() -> list[str]:
        found = client.get("/v1/models/broken").json()["model_version_status"]
        return [status["state"] for status in found]

    until(lambda: states() == ["END"])

    def failures() -> list[str]:
        return [line for line in server.log if "of model broken" in line and " failed" in line]

    until(lambda: len(failures()) == 3)
    assert ["(again in 0.001 s)" in line for line in failures()] == [True, True, False]


def test_what_the_grpc_port_and_web_pages_get(server: ServerProcess) -> None:
    answer = predict_over_grpc(server, np.array([1.0, 5.0], np.float32))
    output = answer.outputs["y"]
    assert np.frombuffer(output.tensor_content, "<f4").tolist() == [2.5, 4.5]
    assert not output.float_val
    with pytest.raises(grpc.RpcError) as refused:
        predict_over_grpc(server, np.arange(2000, dtype=np.float32))
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "vs. 5000" in refused.value.details()

    headers = {"origin": "https://a.example"}
    page = server.client.post(PREDICT, json={"instances": [2.0]}, headers=headers)
    assert page.headers["access-control-allow-origin"] == "*"

    assert pool_threads(server) == 3
    assert "online with 3 threads and up to 2 for each kernel" in "".join(server.log)


@pytest.fixture
def batching(tmp_path: pathlib.Path) -> Iterator[ServerProcess]:
    entries = []
    for name in ("half", "own"):
        base = tagged(tmp_path / name, "serve")
        entries.append(
            f'config {{ name: "{name}" base_path: "{base}" model_platform: "tensorflow" }}'
        )
    for path, size in ((tmp_path / "own" / "1" / "batching_params.pbtxt", 16), (tmp_path / "p", 8)):
        path.write_text(f"max_batch_size {{ value: {size} }} allowed_batch_sizes: {size}")
    (tmp_path / "models.config").write_text(f"model_config_list {{ {' '.join(entries)} }}")
    session = "inter_op_parallelism_threads: 5 log_device_placement: true"
    (tmp_path / "session.config").write_text(session)
    yield from start(
        f"--model_config_file={tmp_path / 'models.config'}",
        "--enable_batching",
        f"--batching_parameters_file={tmp_path / 'p'}",
        "--enable_per_model_batching_parameters",
        f"--tensorflow_session_config_file={tmp_path / 'session.config'}",
    )


def test_batches_by_the_files_and_the_config_of_sessions(batching: ServerProcess) -> None:
    for name, padding in (("half", "5.0"), ("own", "13.0")):
        body = {"instances": [[1.0], [2.0], [5.0]]}
        answer = batching.client.post(f"/v1/models/{name}:predict", json=body)
        assert answer.json() == {"predictions": [[2.5], [3.0], [4.5]]}
        metrics = batching.client.get("/monitoring/prometheus/metrics").text
        pattern = rf'^runstep_batch_padding_rows_total{{.*"{name}".*}} (.*)$'
        assert re.findall(pattern, metrics, re.MULTILINE) == [padding]
        config = batching.client.get(f"/v2/models/{name}/config").json()
        assert config["dynamic_batching"] == {
            "preferred_batch_size": [3 + int(float(padding))], "max_queue_delay_microseconds": 0
        }  # fmt: skip
        assert config["version_policy"] == {"latest": {"num_versions": 1}}
    assert pool_threads(batching) == 5
    batching.wait_for("/device:CPU:0")


def post_large_bodies(server: ServerProcess, number: int) -> int:
    """Send large bodies at the same time; return how many threads the process has then."""
    body = json.dumps({"instances": [0.5] * OFF_LOOP_BYTES}).encode()

    async def post() -> list[int]:
        async with httpx.AsyncClient(base_url=server.http_address, timeout=SECONDS) as client:
            calls = (client.post(PREDICT, content=body) for _ in range(number))
            return [answer.status_code for answer in await asyncio.gather(*calls)]

    assert asyncio.run(post()) == [504] * number  # reading takes longer than the deadline
    return len(list(pathlib.Path(f"/proc/{server.process.pid}/task").iterdir()))


@pytest.mark.parametrize("threads", [1, 6])
def test_threads_that_read_large_bodies_and_their_deadline(
    tmp_path: pathlib.Path, threads: int
) -> None:
    flags = (
        f"--model_base_path={tagged(tmp_path / 'half', 'serve')}",
        "--model_name=half",
        f"--rest_api_num_threads={threads}",
        "--rest_api_timeout_in_ms=1",
    )
    for server in start(*flags):
        before = post_large_bodies(server, 1)
        if threads == 1:
            assert post_large_bodies(server, 8) == before
        else:
            until(functools.partial(_has_more_threads, server, before))


def _has_more_threads(server: ServerProcess, before: int) -> bool:
    return post_large_bodies(server, 8) > before


def test_every_honoured_flag_is_on_a_process_here() -> None:
    files = pathlib.Path(__file__).parent.glob("test_*process.py")
    given = "".join(file.read_text() for file in (*files, pathlib.Path(__file__)))
    honoured = {flag.name for flag in FLAGS if flag.treatment == "honoured"}
    assert {name for name in honoured if not re.search(rf"--{name}\b", given)} == set()
