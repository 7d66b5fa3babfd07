"""A real server whose model is computed by OpenVINO in bfloat16."""

from __future__ import annotations

import importlib.util
import pathlib

import pytest

from runtime.clusters.engine_choice import BFLOAT16
from tests.integration.served_products import (
    compiled_version,
    predict,
    relative_error,
    samples,
    serve,
    write_model,
)

if importlib.util.find_spec("openvino") is None:
    pytest.skip("the extra openvino is not installed", allow_module_level=True)
from runtime.clusters import openvino_backend

HAS_BFLOAT16 = not openvino_backend.unfit_precision(BFLOAT16)


def test_models_are_served_by_openvino_each_in_its_precision(tmp_path: pathlib.Path) -> None:
    base_path = write_model(tmp_path / "m")
    models = [
        {"name": "fast", "base_path": base_path, "engine": "openvino", "precision": "bf16"},
        {"name": "exact", "base_path": base_path, "engine": "openvino"},
        {"name": "default", "base_path": base_path},
    ]
    server = serve(tmp_path, models)
    try:
        fast = compiled_version(server, "fast")
        assert fast["engine"]["engine"] == f"OpenVINO {openvino_backend.VERSION}"
        precision = BFLOAT16 if HAS_BFLOAT16 else "float32"
        (cluster,) = fast["clusters"]
        assert cluster["engine"] == fast["engine"]["engine"]
        assert cluster["precision"] == fast["engine"]["precision"] == precision
        error = relative_error(predict(server, "fast"))
        assert 1e-5 < error < 1e-2 if HAS_BFLOAT16 else error < 1e-5
        low = server.client.post(
            "/v1/models/fast:predict", json={"inputs": [[0.0] * 512]}, headers={"X-Priority": "low"}
        )
        assert low.json() == {"outputs": [[0.0] * 512]}
        exact = compiled_version(server, "exact")
        assert exact["engine"]["precision"] == "float32"
        assert relative_error(predict(server, "exact")) < 1e-5
        assert compiled_version(server, "default")["engine"]["engine"].startswith("ONNX Runtime ")
        forms = samples(server, "runstep_cluster_engine_forms")
        assert any(f'"OpenVINO {openvino_backend.VERSION}",precision="{precision}"' in each
                   for each in forms)  # fmt: skip
        unmet = samples(server, "runstep_cluster_engine_unmet")
        assert (unmet == []) is HAS_BFLOAT16
        console = server.client.get("/console/api/models/fast").json()
        assert server.stop() == 0
    finally:
        server.end()
    assert console["engine"] == f"OpenVINO {openvino_backend.VERSION} in {precision}"


def test_a_server_stops_at_once_while_openvino_compiles_and_runs(tmp_path: pathlib.Path) -> None:
    model = {"name": "m", "base_path": write_model(tmp_path / "m")}
    server = serve(tmp_path, [model], engine="openvino")
    try:
        for _ in range(8):
            predict(server, "m")
        assert server.stop() == 0
    finally:
        server.end()
