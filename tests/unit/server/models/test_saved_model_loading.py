"""Which settings reach the sessions of served models."""

from __future__ import annotations

import shutil
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.api import SessionOptions
from runtime.clusters.engine_choice import EngineChoice
from runtime.executors import clustered
from server.models import saved_model_loading
from server.models.saved_model_loading import SavedModelLoading
from server.settings import ModelLoadingSettings, ModelSettings, Settings, ThreadPoolSettings

HALF_PLUS_TWO = Path(__file__).parents[3] / "fixtures" / "saved_models" / "half_plus_two"


def clusters_of(settings: Settings, name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the value that the sessions of the model `name` get."""
    seen: list[str] = []

    def load(options: SessionOptions, *_: object) -> object:
        seen.append(options.clusters)
        return types.SimpleNamespace(session=None)

    monkeypatch.setattr(saved_model_loading, "load_saved_model", load)
    SavedModelLoading(settings).load(name, 1, Path("folder"))
    return seen[0]


# A load makes the pools that are not there, which the tests of others would find then.
ONE_POOL: dict[str, Any] = {
    "thread_pools": (ThreadPoolSettings(name="online"),),
    "priorities": {"normal": "online"},
}


@pytest.mark.parametrize(
    ("of_server", "of_model", "expected"),
    [("auto", None, "auto"), ("off", None, "off"), ("off", "auto", "auto"), ("auto", "off", "off")],
)
def test_a_model_may_have_another_setting_of_clusters(
    of_server: str, of_model: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ModelSettings(name="m", base_path="/m", clusters=of_model)  # type: ignore[arg-type] # from a file
    settings = Settings(clusters=of_server, models=(model,))  # type: ignore[arg-type] # from a file
    assert clusters_of(settings, "m", monkeypatch) == expected
    assert clusters_of(settings, "other", monkeypatch) == of_server


@pytest.mark.parametrize(
    ("of_model", "expected"),
    [
        ({}, ("openvino", "bfloat16")),
        ({"precision": "f32"}, ("openvino", "float32")),
        ({"engine": "onnxruntime"}, ("onnxruntime", "float32")),
        ({"engine": "openvino"}, ("openvino", "bfloat16")),
    ],
)
def test_a_model_may_have_another_engine_and_precision(
    of_model: dict[str, Any], expected: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, str]] = []

    def load(options: SessionOptions, *_: object) -> object:
        seen.append((options.engine, options.precision))
        return types.SimpleNamespace(session=None)

    monkeypatch.setattr(saved_model_loading, "load_saved_model", load)
    model = ModelSettings(name="m", base_path="/m", **of_model)
    loading = SavedModelLoading(Settings(engine="openvino", precision="bf16", models=(model,)))
    loading.load("m", 1, Path("folder"))
    loading.load("other", 1, Path("folder"))  # of a model config file
    assert seen == [expected, ("openvino", "bfloat16")]


def test_an_engine_that_was_named_is_looked_for_when_a_model_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted: list[EngineChoice] = []
    monkeypatch.setattr(clustered, "find_engine", wanted.append)
    for settings in (
        Settings(**ONE_POOL),
        Settings(engine="openvino", precision="bf16", **ONE_POOL),
        Settings(engine="openvino", clusters="off", **ONE_POOL),
    ):
        SavedModelLoading(settings).load("m", 1, HALF_PLUS_TWO).session.close()
    assert clustered.compile_queue.wait_until_idle(60.0)
    assert wanted == [EngineChoice("openvino", "bfloat16")]


def options_of(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> tuple[pb.ConfigProto, Any]:
    """Return the configuration of sessions and the tags of what is loaded."""
    seen: list[Any] = []

    def load(options: SessionOptions, _: object, __: str, tags: object) -> object:
        seen.extend((options.config, tags))
        return types.SimpleNamespace(session=None)

    monkeypatch.setattr(saved_model_loading, "load_saved_model", load)
    SavedModelLoading(settings).load("m", 1, Path("folder"))
    return seen[0], seen[1]


def test_the_session_config_file_and_the_tags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "session.config"
    file.write_text(
        "operation_timeout_in_ms: 7 session_inter_op_thread_pool { num_threads: 9 }"
        "graph_options { optimizer_options { opt_level: L0 } }"
    )
    loading = ModelLoadingSettings(tags=("serve", "gpu"))
    settings = Settings(session_config_file=str(file), model_loading=loading)
    config, tags = options_of(settings, monkeypatch)
    assert config.operation_timeout_in_ms == 7
    assert config.graph_options.optimizer_options.opt_level == pb.OptimizerOptions.L0
    pools = [pool.global_name for pool in config.session_inter_op_thread_pool]
    assert pools == [pool.name for pool in settings.thread_pools]
    assert config.allow_soft_placement
    assert tags == ("serve", "gpu")


def test_a_graph_for_a_gpu_runs_and_the_log_says_where(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "m"
    shutil.copytree(HALF_PLUS_TWO, folder)
    model = pb.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    nodes = model.meta_graphs[0].graph_def.node
    for node in nodes:
        node.device = "/device:GPU:0"
    nodes[0].device = "/job:localhost/replica:0/task:0/device:CPU:0"
    (folder / "saved_model.pb").write_bytes(model.SerializeToString())
    settings = Settings(**ONE_POOL)
    bundle = SavedModelLoading(settings).load("m", 7, folder)
    try:
        values = bundle.session.run({"x:0": np.ones((1, 1), np.float32)}, ["y:0"])
    finally:
        bundle.session.close()
    assert values[0].tolist() == [[2.5]]
    (message,) = [text for text in caplog.messages if "on the CPU" in text]
    assert message == (
        f"Version 7 of model m: {len(nodes) - 1} nodes request /device:GPU:0, which is not here; "
        "they run on the CPU"
    )
