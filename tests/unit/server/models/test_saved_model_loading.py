"""Which settings reach the sessions of served models."""

from __future__ import annotations

import shutil
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.api import SessionOptions
from runtime.clusters.engine_choice import EngineChoice
from runtime.errors import NotFoundError
from runtime.executors import clustered
from server.models import saved_model_loading
from server.models.saved_model_loading import SavedModelLoading
from server.settings import ModelLoadingSettings, ModelSettings, Settings, ThreadPoolSettings
from tests.saved_model_corpus import FIXTURES

HALF_PLUS_TWO = FIXTURES / "half_plus_two"


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


def without_checkpoint(name: str, folder: Path, change: Callable[[Any], object] = repr) -> Path:
    """Return a copy of a fixture whose meta graph is changed and whose variables are missing."""
    shutil.copytree(FIXTURES / name, folder)
    model = pb.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    change(model.meta_graphs[0])
    (folder / "saved_model.pb").write_bytes(model.SerializeToString())
    shutil.rmtree(folder / "variables")
    return folder


def use_the_mutable_table(meta_graph: Any) -> None:
    """Let the signature look up in the table that the checkpoint fills, as older Keras does."""
    for node in meta_graph.graph_def.node:
        if node.name == "StatefulPartitionedCall_1":
            node.input[1] = "MutableHashTable"


@pytest.mark.parametrize(
    ("name", "change", "missing"),
    [
        ("half_plus_two", repr, "a, b"),
        ("half_plus_two_tf2", repr, "b, a"),
        ("text_vectorization", use_the_mutable_table, "MutableHashTable"),
        ("fake_quant", repr, "kernel_0, bias_0, max_0 and 4 more"),
    ],
)
def test_a_version_without_its_checkpoint_does_not_load(
    name: str, change: Callable[[Any], object], missing: str, tmp_path: Path
) -> None:
    folder = without_checkpoint(name, tmp_path / "m", change)
    with pytest.raises(NotFoundError) as caught:
        SavedModelLoading(Settings(**ONE_POOL)).load("m", 1, folder)
    assert caught.value.message == (
        f"Expected a checkpoint with the values of {missing}; "
        f"{folder}/variables/variables.index is not there"
    )


def test_a_version_without_a_part_of_its_checkpoint_does_not_load(tmp_path: Path) -> None:
    folder = shutil.copytree(HALF_PLUS_TWO, tmp_path / "m")
    (folder / "variables" / "variables.data-00000-of-00001").unlink()
    with pytest.raises(NotFoundError, match="data-00000-of-00001; No such file"):
        SavedModelLoading(Settings(**ONE_POOL)).load("m", 1, folder)


def initialize_by_op(meta_graph: Any) -> None:
    meta_graph.collection_def["saved_model_main_op"].node_list.value.append("init")


def leave_no_restore_op(meta_graph: Any) -> None:
    meta_graph.ClearField("saver_def")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("hashing", repr),  # has a restore op, but no variables
        ("text_vectorization", repr),  # no signature uses the table that the checkpoint fills
        ("half_plus_two", initialize_by_op),
        ("half_plus_two", leave_no_restore_op),
    ],
)
def test_a_version_that_needs_no_checkpoint_loads(
    name: str, change: Callable[[Any], object], tmp_path: Path
) -> None:
    folder = without_checkpoint(name, tmp_path / "m", change)
    SavedModelLoading(Settings(**ONE_POOL)).load("m", 1, folder).session.close()
