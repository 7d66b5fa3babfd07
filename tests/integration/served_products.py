"""A model of products that are worth a cluster, and its answers, for servers with engines."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import numpy as np
import yaml

import protos as pb
from tests.conformance.case import Graph
from tests.integration.server_process import ServerProcess

SIZE, BATCH = 512, 16
MAX_REQUESTS = 200  # until the cluster is compiled, which takes about ten


def weights() -> list[np.ndarray]:
    """Three matrices `[SIZE, SIZE]`."""
    random = np.random.default_rng(11)
    return [random.normal(0, SIZE**-0.5, (SIZE, SIZE)).astype(np.float32) for _ in range(3)]


def inputs() -> np.ndarray:
    """`[BATCH, SIZE]`, between -1 and 1."""
    return np.random.default_rng(12).uniform(-1, 1, (BATCH, SIZE)).astype(np.float32)


def expected() -> np.ndarray:
    """What the model answers, in float32."""
    value = inputs()
    for weight in weights():
        value = np.maximum(value @ weight, 0)
    return value


def write_model(base_path: pathlib.Path) -> str:
    """Write version 1 of the model, `y = relu(…relu(x · w) · w…)`; return the base path."""
    graph = Graph()
    value = x = graph.placeholder("float32", "x", [-1, SIZE])
    for weight in weights():
        (value,) = graph.add("Relu", graph.add("MatMul", value, weight)[0])
    meta_graph = pb.MetaGraphDef(graph_def=graph.graph_def)
    meta_graph.meta_info_def.tags.append("serve")
    signature = meta_graph.signature_def["serving_default"]
    signature.method_name = "tensorflow/serving/predict"
    for infos, alias, tensor in ((signature.inputs, "x", x), (signature.outputs, "y", value)):
        infos[alias].name, infos[alias].dtype = tensor[0], int(pb.DT_FLOAT)
        for size in (-1, SIZE):
            infos[alias].tensor_shape.dim.add(size=size)
    folder = base_path / "1"
    folder.mkdir(parents=True)
    model = pb.SavedModel(saved_model_schema_version=1, meta_graphs=[meta_graph])
    (folder / "saved_model.pb").write_bytes(model.SerializeToString())
    return str(base_path)


def serve(folder: pathlib.Path, models: list[dict[str, Any]], **settings: Any) -> ServerProcess:
    """A server of models, each with the folder that `write_model` has returned."""
    config = folder / "server.yaml"
    config.write_text(yaml.safe_dump({"models": models, **settings}))
    server = ServerProcess(f"--config={config}")
    for model in models:
        server.wait_for(f"Loaded version 1 of model {model['name']}")
    return server


def predict(server: ServerProcess, model: str) -> np.ndarray:
    """The answer for `inputs`."""
    answer = server.client.post(f"/v1/models/{model}:predict", json={"inputs": inputs().tolist()})
    assert answer.status_code == 200, answer.text
    return np.array(answer.json()["outputs"], np.float32)


def relative_error(got: np.ndarray) -> float:
    """The largest difference from `expected`, relative to the largest value."""
    return float(np.abs(got - expected()).max() / np.abs(expected()).max())


def version_of(server: ServerProcess, model: str) -> dict[str, Any]:
    """What the list of models says of the version."""
    models = server.client.get("/v1/models").json()["models"]
    (found,) = [each["versions"][0] for each in models if each["name"] == model]
    assert isinstance(found, dict)
    return found


def compiled_version(server: ServerProcess, model: str) -> dict[str, Any]:
    """The same once requests have had the cluster compiled; all are answered."""
    for _ in range(MAX_REQUESTS):
        assert relative_error(predict(server, model)) < 2e-2
        found = version_of(server, model)
        if [each["state"] for each in found["clusters"]] == ["compiled"]:
            return found
    raise AssertionError(f"no cluster was compiled: {found}")


def samples(server: ServerProcess, metric: str) -> list[str]:
    """The lines of a metric, without its description."""
    text = server.client.get("/monitoring/prometheus/metrics").text
    return re.findall(rf"^{metric}{{.*$", text, re.MULTILINE)
