"""The real process with TensorFlow Serving's own flags and configuration file."""

from __future__ import annotations

import concurrent.futures
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_server_process import ServerProcess

FIXTURES = Path(__file__).parents[1] / "fixtures" / "saved_models"
CONFIG = """
model_config_list {{
  config {{
    name: 'half' base_path: '{base}/half' model_platform: 'tensorflow'
    model_version_policy {{ all {{}} }}
    version_labels {{ key: 'stable' value: 1 }}
  }}
  config {{ name: 'counter' base_path: '{base}/counter' model_platform: 'tensorflow' }}
}}
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    shutil.copytree(FIXTURES / "half_plus_two", tmp_path / "half" / "1")
    shutil.copytree(FIXTURES / "counter", tmp_path / "counter" / "1")
    config = tmp_path / "models.config"
    config.write_text(CONFIG.format(base=tmp_path))
    process = ServerProcess(f"--model_config_file={config}", "--file_system_poll_wait_seconds=0.05")
    try:
        process.wait_for("Loaded version 1 of model half")
        process.wait_for("Loaded version 1 of model counter")
        yield process
    finally:
        process.end()


def test_versions_labels_and_state(server: ServerProcess, tmp_path: Path) -> None:
    client = server.client
    half = {"instances": [1.0, 2.0, 5.0]}
    assert client.post("/v1/models/half:predict", json=half).json() == {
        "predictions": [2.5, 3.0, 4.5]
    }
    # A folder that is moved in whole appears at once; a copy could be seen half done.
    shutil.copytree(FIXTURES / "half_plus_two_tf2", tmp_path / "copy")
    (tmp_path / "copy").rename(tmp_path / "half" / "2")
    server.wait_for("Loaded version 2 of model half")
    states = client.get("/v1/models/half").json()["model_version_status"]
    assert [(s["version"], s["state"]) for s in states] == [
        ("2", "AVAILABLE"),
        ("1", "AVAILABLE"),
    ]
    stable = client.get("/v1/models/half/labels/stable/metadata").json()
    assert stable["model_spec"]["version"] == "1"
    shutil.rmtree(tmp_path / "half" / "2")
    server.wait_for("Unloaded version 2 of model half")
    assert client.get("/v1/models/half/metadata").json()["model_spec"]["version"] == "1"
    assert server.stop() == 0


def test_the_log_says_where_the_model_of_the_image_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(FIXTURES / "half_plus_two", tmp_path / "half" / "1")
    monkeypatch.setenv("MODEL_NAME", "half")
    monkeypatch.setenv("MODEL_BASE_PATH", str(tmp_path))
    process = ServerProcess()
    try:
        process.wait_for("Loaded version 1 of model half")
        line = process.wait_for("Configuration: ")
    finally:
        process.end()
    used = "MODEL_NAME, MODEL_BASE_PATH, RUNSTEP_GRPC__PORT, RUNSTEP_REST__PORT"
    assert line.endswith(f"Configuration: file configs/server.yaml; environment {used}\n")


def test_the_serving_session_keeps_its_state_between_requests(server: ServerProcess) -> None:
    add_one = {"signature_name": "incr_counter", "inputs": {}}

    def count(_: int) -> float:
        answer = server.client.post("/v1/models/counter:predict", json=add_one)
        assert answer.status_code == 200, answer.text
        outputs: float = answer.json()["outputs"]
        return outputs

    assert [count(0), count(0)] == [1.0, 2.0]
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        list(threads.map(count, range(20)))
    metrics = server.client.get("/monitoring/prometheus/metrics").text
    assert ':tensorflow:serving:request_count{model_name="counter",status="OK"} 22' in metrics
