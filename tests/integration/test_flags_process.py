"""The flags of TensorFlow Serving on real processes: what each changes shows in what they do."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

import grpc
import pytest

import protos as pb
from runtime.framework.io.record_files import tf_records
from runtime.framework.io.record_writer import tf_record_bytes
from runtime.framework.tensor_codec import tensor_from_proto
from tests.integration.access import Authority
from tests.integration.server_process import ROOT, SECONDS, ServerProcess, on_free_ports

HALF_PLUS_TWO = ROOT / "tests" / "fixtures" / "saved_models" / "half_plus_two"
EXECUTABLE = [sys.executable, "-m", "server.commands.model_server"]


@pytest.fixture
def base_path(tmp_path: pathlib.Path) -> pathlib.Path:
    """A model whose warm-up has one multi-inference request."""
    base = tmp_path / "model"
    shutil.copytree(HALF_PLUS_TWO, base / "7")
    log = pb.serving.PredictionLog()
    request = log.multi_inference_log.request
    for name, method in (("regress_x_to_y", "regress"), ("classify_x_to_y", "classify")):
        task = request.tasks.add(method_name=f"tensorflow/serving/{method}")
        task.model_spec.signature_name = name
    example = request.input.example_list.examples.add()
    example.features.feature["x"].float_list.value.append(2.0)
    extra = base / "7" / "assets.extra"
    extra.mkdir(exist_ok=True)
    records = tf_record_bytes([log.SerializeToString()])
    (extra / "tf_serving_warmup_requests").write_bytes(records)
    return base


def list_devices(channel: grpc.Channel) -> pb.ListDevicesResponse:
    with channel:
        method = channel.unary_unary("/tensorflow.MasterService/ListDevices")
        return pb.ListDevicesResponse.FromString(method(b"", timeout=SECONDS))


class Executable(ServerProcess):
    """`tensorflow_model_server` without HTTP, on a free gRPC port."""

    def __init__(self, *flags: str) -> None:
        environment = on_free_ports()
        del environment["RUNSTEP_REST__PORT"]
        self.follow(
            subprocess.Popen(
                [*EXECUTABLE, *flags], cwd=ROOT, stderr=subprocess.PIPE, text=True, env=environment
            )
        )

    def _find_http(self) -> str:
        return ""


@pytest.fixture
def executable(base_path: pathlib.Path, tmp_path: pathlib.Path) -> Iterator[Executable]:
    process = Executable(
        f"--model_base_path={base_path}",
        "--model_name=half",
        f"--grpc_socket_path={tmp_path / 'grpc.sock'}",
        "--num_load_threads=3",
        "--tensorflow_session_parallelism=2",
        "--num_request_iterations_for_warmup=4",
        "--enable_profiler",
        "--frobnicate=1",
    )
    try:
        yield process
    finally:
        process.end()


def test_the_executable_serves_grpc_alone_on_its_port_and_on_a_socket(
    executable: Executable, tmp_path: pathlib.Path
) -> None:
    serving = executable.wait_for("Serving on")
    socket = tmp_path / "grpc.sock"
    address = re.search(r"Serving on grpc://(\S+):(\d+) and unix:(\S+): models half$", serving)
    assert address is not None and address[3] == str(socket)
    for target in (f"127.0.0.1:{address[2]}", f"unix:{socket}"):
        assert list_devices(grpc.insecure_channel(target)).local_device
    log = "".join(executable.log)
    assert "HTTP listens" not in log
    assert "loading with 3 threads for loading models" in log
    assert "online with 2 threads" in log
    assert "Replayed 1 requests 4 times from" in log
    assert log.count("--enable_profiler has no effect here, because there is no profiler") == 1
    assert executable.stop() == 0


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ([], "Both server_options.model_base_path and server_options.model_config_file are empty!"),
        (["--port=0", "--model_base_path=/m"], "At least one of server_options.grpc_port or"),
        (["--port=x"], "expected an integer, got 'x'"),
        (["--model_base_path=/m", "--use_alts_credentials"], "--use_alts_credentials is refused"),
        (["--frobnicate"], "unknown argument: --frobnicate"),
    ],
)
def test_the_executable_fails_as_that_of_tensorflow_serving(flags: list[str], text: str) -> None:
    done = subprocess.run(
        [*EXECUTABLE, *flags], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 255
    assert text in done.stdout


@pytest.mark.parametrize("command", [EXECUTABLE, [sys.executable, "-m", "server.main", "serve"]])
def test_the_version(command: list[str]) -> None:
    done = subprocess.run(
        [*command, "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert re.match(r"TensorFlow ModelServer: Runstep \d\S*, .*\nTensorFlow Library: ", done.stdout)


@pytest.fixture
def configured(base_path: pathlib.Path, tmp_path: pathlib.Path) -> Iterator[ServerProcess]:
    (tmp_path / "models.config").write_text(
        f"""model_config_list {{ config {{
          name: "half" base_path: "{base_path}" model_platform: "tensorflow"
          logging_config {{
            log_collector_config {{ type: "file" filename_prefix: "{tmp_path / "logs" / "r"}" }}
            sampling_config {{ sampling_rate: 1 }}
          }} }} }}"""
    )
    (tmp_path / "monitoring.config").write_text('prometheus_config { enable: true path: "/m" }')
    issued = Authority(tmp_path).issue("localhost", ip="127.0.0.1")
    key, certificate = (pathlib.Path(path).read_text() for path in (issued.key, issued.certificate))
    (tmp_path / "ssl.config").write_text(f"server_key: {key!r} server_cert: {certificate!r}")
    process = ServerProcess(
        f"--model_config_file={tmp_path / 'models.config'}",
        f"--monitoring_config_file={tmp_path / 'monitoring.config'}",
        f"--ssl_config_file={tmp_path / 'ssl.config'}",
        "--enable_signature_method_name_check",
        "--rest_api_num_threads=2",
    )
    try:
        yield process
    finally:
        process.end()


def test_files_of_tensorflow_serving(configured: ServerProcess, tmp_path: pathlib.Path) -> None:
    configured.wait_for("Serving on")
    client = configured.client
    authority = (tmp_path / "ca.pem").read_bytes()
    port = configured.grpc_address.rpartition(":")[2]
    credentials = grpc.ssl_channel_credentials(authority)
    assert list_devices(grpc.secure_channel(f"localhost:{port}", credentials)).local_device

    predicted = client.post("/v1/models/half:predict", json={"instances": [1.0, 5.0]})
    assert predicted.json() == {"predictions": [2.5, 4.5]}
    body = {"signature_name": "regress_x_to_y", "examples": [{"x": 80.0}]}
    assert client.post("/v1/models/half:regress", json=body).json() == {"results": [42.0]}
    refused = client.post("/v1/models/half:classify", json=body)
    assert refused.status_code == 400
    assert "Expected classification signature method_name to be" in refused.json()["error"]

    assert client.get("/monitoring/prometheus/metrics").status_code == 404
    assert configured.stop() == 0
    (file,) = (tmp_path / "logs").iterdir()
    predict, regress = (
        pb.serving.PredictionLog.FromString(record) for _, record in tf_records(str(file), "")
    )
    request = predict.predict_log.request
    assert (request.model_spec.name, request.model_spec.version.value) == ("half", 7)
    assert tensor_from_proto(request.inputs["x"]).tolist() == [1.0, 5.0]
    assert tensor_from_proto(predict.predict_log.response.outputs["y"]).tolist() == [2.5, 4.5]
    assert regress.regress_log.response.result.regressions[0].value == 42.0


def test_logged_requests_are_a_warm_up(
    configured: ServerProcess, base_path: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    configured.wait_for("Serving on")
    for _ in range(3):
        configured.client.post("/v1/models/half:predict", json={"instances": [1.0]})
    metrics = configured.client.get("/m").text
    assert ":tensorflow:serving:request_log_count" in metrics
    assert configured.stop() == 0
    (file,) = (tmp_path / "logs").iterdir()
    shutil.copy(file, base_path / "7" / "assets.extra" / "tf_serving_warmup_requests")
    again = ServerProcess(f"--model_base_path={base_path}")
    try:
        again.wait_for("Replayed 3 requests")
        again.wait_for("Serving on")
    finally:
        again.end()
