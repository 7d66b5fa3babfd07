"""A server whose models want an engine that is not installed: ONNX Runtime stands in for it."""

from __future__ import annotations

import importlib.util
import pathlib

import pytest

from tests.integration.served_products import (
    compiled_version,
    predict,
    relative_error,
    samples,
    serve,
    version_of,
    write_model,
)

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("openvino") is not None, reason="the extra openvino is installed"
)
pytest.importorskip("onnxruntime")


def test_onnx_runtime_stands_in_for_an_engine_that_is_not_installed(
    tmp_path: pathlib.Path,
) -> None:
    model = {"name": "m", "base_path": write_model(tmp_path / "m")}
    server = serve(tmp_path, [model], engine="openvino", precision="bf16")
    try:
        line = server.wait_for("Clusters run on ONNX Runtime")
        assert "in float32 instead of OpenVINO in bfloat16, because OpenVINO is missing" in line
        found = compiled_version(server, "m")
        assert found["engine"]["engine"].startswith("ONNX Runtime ")
        assert found["engine"]["precision"] == "float32"
        assert found["engine"]["reason"].startswith("OpenVINO is missing")
        (cluster,) = found["clusters"]
        assert cluster["engine"] == found["engine"]["engine"]
        assert relative_error(predict(server, "m")) < 1e-5
        shown = server.client.get("/console/api/models/m").json()
        assert shown["engine"] == f"{cluster['engine']} in float32"
        assert shown["engine_reason"] == found["engine"]["reason"]
        (unmet,) = samples(server, "runstep_cluster_engine_unmet")
        assert 'engine="openvino",precision="bfloat16",reason="OpenVINO is missing' in unmet
        assert server.stop() == 0
        assert sum("Clusters run on" in line for line in server.log) == 1
    finally:
        server.end()


def test_a_model_may_be_without_clusters_or_on_another_engine(tmp_path: pathlib.Path) -> None:
    base_path = write_model(tmp_path / "m")
    models = [
        {"name": "off", "base_path": base_path, "clusters": "off"},
        {"name": "onnx", "base_path": base_path, "engine": "onnxruntime"},
    ]
    server = serve(tmp_path, models, engine="openvino", precision="bf16")
    try:
        found = compiled_version(server, "onnx")
        assert (found["engine"]["precision"], found["engine"]["reason"]) == ("float32", "")
        assert relative_error(predict(server, "off")) < 1e-5
        assert version_of(server, "off")["clusters"] == []
        assert samples(server, "runstep_cluster_engine_unmet") == []
        assert server.stop() == 0
        assert not any("Clusters run on" in line for line in server.log)
    finally:
        server.end()
