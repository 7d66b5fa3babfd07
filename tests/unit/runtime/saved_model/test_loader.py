"""Loading a SavedModel: restore, init op, assets, errors, and sessions opened on it."""

from __future__ import annotations

import pathlib
import shutil

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    DataLossError,
    DataType,
    DirectSession,
    FailedPreconditionError,
    InvalidArgumentError,
    KernelDef,
    NotFoundError,
    OpError,
    OutOfRangeError,
    PermissionDeniedError,
    SavedModelBundle,
    SessionOptions,
    load_saved_model,
)
from runtime.framework.io.file_gate import AllowAll
from runtime.framework.io.tensor_bundle_writer import TensorBundleWriter
from runtime.framework.resources.variable import Variable
from runtime.saved_model.initialization import (
    INIT_OP_SIGNATURE_KEY,
    LEGACY_INIT_OP_COLLECTION,
    MAIN_OP_COLLECTION,
)
from tests.conformance.case import Graph
from tests.saved_model_corpus import FIXTURES

IN_CALLER_THREAD = pb.ConfigProto(inter_op_parallelism_threads=-1)


def load(folder: pathlib.Path, **options: object) -> SavedModelBundle:
    given = SessionOptions(config=IN_CALLER_THREAD, **options)  # type: ignore[arg-type]
    return load_saved_model(given, None, str(folder), {"serve"})


@pytest.fixture
def half_plus_two(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of the fixture model that a test may damage."""
    return pathlib.Path(shutil.copytree(FIXTURES / "half_plus_two", tmp_path / "model"))


def predict(bundle: SavedModelBundle) -> list[float]:
    signature = bundle.signatures["serving_default"]
    x = np.array([[2.0], [4.0]], np.float32)
    (y,) = bundle.session.run({signature.inputs["x"].name: x}, [signature.outputs["y"].name])
    return y.ravel().tolist()


def test_restores_and_serves(half_plus_two: pathlib.Path) -> None:
    bundle = load(half_plus_two)
    assert predict(bundle) == [3.0, 4.0]
    assert bundle.export_dir == str(half_plus_two)
    assert "regress_x_to_y" in bundle.signatures


def test_without_variables_nothing_is_restored(half_plus_two: pathlib.Path) -> None:
    shutil.rmtree(half_plus_two / "variables")
    bundle = load(half_plus_two)
    with pytest.raises(FailedPreconditionError, match="Attempting to use uninitialized value"):
        predict(bundle)


SHARD = "variables/variables.data-00000-of-00001"
INDEX = "variables/variables.index"
DAMAGE = {
    "missing shard": (
        SHARD, None, NotFoundError,
        "{path}/variables/variables.data-00000-of-00001; No such file or directory",
    ),
    "truncated shard": (
        SHARD, lambda data: data[:2], OutOfRangeError, "Read less bytes than requested",
    ),
    "flipped value": (
        SHARD, lambda data: bytes([data[0] ^ 1]) + data[1:], DataLossError,
        "TensorBundle at {path}/variables/variables shard 0 (4 bytes): Checksum does not match: "
        "stored ",
    ),
    "flipped index": (
        INDEX, lambda data: data[:9] + bytes([data[9] ^ 1]) + data[10:], DataLossError,
        "Unable to read file ({path}/variables/variables.index). Perhaps the file is corrupt or "
        "was produced by a newer version of TensorFlow with format changes (failed to seek to "
        "header entry): block checksum mismatch",
    ),
    "bad magic": (
        INDEX, lambda data: data[:-1] + b"x", DataLossError, "not an sstable (bad magic number)",
    ),
    "short index": (
        INDEX, lambda data: data[:20], DataLossError, "file is too short to be an sstable",
    ),
    "junk graph": (
        "saved_model.pb", lambda data: b"junk junk", OutOfRangeError,
        "Read less bytes than requested",
    ),
    "empty graph": (
        "saved_model.pb", lambda data: b"", NotFoundError,
        "Could not find meta graph def matching supplied tags: {{ serve }}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files(half_plus_two: pathlib.Path, damage: str) -> None:
    name, change, kind, message = DAMAGE[damage]
    path = half_plus_two / name
    if change is None:
        path.unlink()
    else:
        path.write_bytes(change(path.read_bytes()))
    with pytest.raises(OpError) as caught:
        load(half_plus_two)
    assert type(caught.value) is kind
    assert caught.value.message.startswith(message.format(path=half_plus_two))


def test_a_target_that_nobody_accepts(half_plus_two: pathlib.Path) -> None:
    for target in ("local", "foo://x", "abc"):
        with pytest.raises(NotFoundError, match="No session factory registered"):
            load(half_plus_two, target=target)


def write_model(folder: pathlib.Path, meta_graph: pb.MetaGraphDef) -> None:
    """Write a SavedModel of one meta graph with the tag `serve`."""
    meta_graph.meta_info_def.tags.append("serve")
    saved = pb.SavedModel(saved_model_schema_version=1, meta_graphs=[meta_graph])
    folder.mkdir(exist_ok=True)
    (folder / "saved_model.pb").write_bytes(saved.SerializeToString())


def variable_model() -> pb.MetaGraphDef:
    """A model with a variable `v`, restored from the key `v`, and nodes that update and read it."""
    graph = Graph()
    attrs = {"dtype": DataType.FLOAT, "shape": (), "shared_name": "v"}
    handle = graph.add("VarHandleOp", name="v", **attrs)[0]
    prefix = graph.placeholder(DataType.STRING, "prefix", ())
    names, slices = np.array([b"v"], object), np.array([b""], object)
    restored = graph.add("RestoreV2", prefix, names, slices, dtypes=[DataType.FLOAT])
    graph.add("AssignVariableOp", handle, restored[0], name="restore")
    graph.add("AssignAddVariableOp", handle, np.float32(1), name="add_one")
    value = graph.add("ReadVariableOp", handle, name="read", dtype=DataType.FLOAT)[0]
    ten_times = graph.add("Mul", value, np.float32(10))[0]
    graph.add("AssignVariableOp", handle, ten_times, name="times_ten")
    saver = pb.SaverDef(filename_tensor_name="prefix:0", restore_op_name="restore")
    return pb.MetaGraphDef(graph_def=graph.graph_def, saver_def=saver)


def write_variable_model(folder: pathlib.Path, meta_graph: pb.MetaGraphDef) -> None:
    write_model(folder, meta_graph)
    with TensorBundleWriter(str(folder / "variables" / "variables"), AllowAll()) as writer:
        writer.add("v", np.array(5, np.float32), DataType.FLOAT)
        writer.finish()


def read(session: object) -> float:
    (value,) = session.run({}, ["read:0"])  # type: ignore[attr-defined]
    return float(value)


INIT_OPS = {
    "none": ({}, None, 5),
    "main op": ({MAIN_OP_COLLECTION: ["add_one"]}, None, 6),
    "legacy": ({LEGACY_INIT_OP_COLLECTION: ["times_ten"]}, None, 50),
    "main before legacy": (
        {MAIN_OP_COLLECTION: ["add_one"], LEGACY_INIT_OP_COLLECTION: ["times_ten"]}, None, 6,
    ),
    "signature before main op": ({MAIN_OP_COLLECTION: ["add_one"]}, "times_ten", 50),
}  # fmt: skip


@pytest.mark.parametrize("case", INIT_OPS)
def test_the_init_op_runs_once_after_the_restore(tmp_path: pathlib.Path, case: str) -> None:
    collections, signature, value = INIT_OPS[case]
    meta_graph = variable_model()
    for key, names in collections.items():
        meta_graph.collection_def[key].node_list.value.extend(names)
    if signature:
        outputs = meta_graph.signature_def[INIT_OP_SIGNATURE_KEY].outputs
        outputs[INIT_OP_SIGNATURE_KEY].name = signature
    write_variable_model(tmp_path, meta_graph)
    assert read(load(tmp_path).session) == value


@pytest.mark.parametrize("names", [[], ["add_one", "times_ten"]])
def test_a_collection_must_name_one_init_op(tmp_path: pathlib.Path, names: list[str]) -> None:
    meta_graph = variable_model()
    meta_graph.collection_def[MAIN_OP_COLLECTION].node_list.value.extend(names)
    meta_graph.collection_def[MAIN_OP_COLLECTION].node_list.SetInParent()
    write_variable_model(tmp_path, meta_graph)
    with pytest.raises(FailedPreconditionError) as caught:
        load(tmp_path)
    assert caught.value.message == f"Expected exactly one main op in : {tmp_path}"


def asset_model(filename: str) -> pb.MetaGraphDef:
    """A model whose init op sets the variable `v` to the contents of an asset."""
    graph = Graph()
    attrs = {"dtype": DataType.STRING, "shape": (), "shared_name": "v"}
    handle = graph.add("VarHandleOp", name="v", **attrs)[0]
    path = graph.placeholder(DataType.STRING, "path", ())
    contents = graph.add("ReadFile", path)[0]
    graph.add("AssignVariableOp", handle, contents, name="init")
    graph.add("ReadVariableOp", handle, name="read", dtype=DataType.STRING)
    meta_graph = pb.MetaGraphDef(graph_def=graph.graph_def)
    meta_graph.collection_def[MAIN_OP_COLLECTION].node_list.value.append("init")
    meta_graph.asset_file_def.add(tensor_info=pb.TensorInfo(name="path:0"), filename=filename)
    return meta_graph


def test_the_init_op_is_fed_with_the_paths_of_assets(tmp_path: pathlib.Path) -> None:
    write_model(tmp_path, asset_model("word.txt"))
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "word.txt").write_bytes(b"hello")
    bundle = load(tmp_path)
    assert bundle.session.run({}, ["read"])[0].item() == b"hello"
    assert bundle.asset_feeds["path:0"].item() == f"{tmp_path}/assets/word.txt".encode()


def test_the_restore_is_fed_with_them_too(tmp_path: pathlib.Path) -> None:
    meta_graph = variable_model()
    graph = Graph()
    graph.add("ReadFile", graph.placeholder(DataType.STRING, "path", ()), name="contents")
    meta_graph.graph_def.node.extend(graph.graph_def.node)
    (restore,) = (node for node in meta_graph.graph_def.node if node.name == "restore")
    restore.input.append("^contents")
    meta_graph.asset_file_def.add(tensor_info=pb.TensorInfo(name="path:0"), filename="word.txt")
    write_variable_model(tmp_path, meta_graph)
    with pytest.raises(NotFoundError, match=r"assets/word\.txt; No such file or directory"):
        load(tmp_path)
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "word.txt").write_bytes(b"hello")
    assert read(load(tmp_path).session) == 5


def test_assets_that_nobody_reads_may_be_missing(half_plus_two: pathlib.Path) -> None:
    path = half_plus_two / "saved_model.pb"
    saved = pb.SavedModel.FromString(path.read_bytes())
    asset = saved.meta_graphs[0].asset_file_def.add(filename="foo.txt")
    asset.tensor_info.name = "tf_example:0"
    path.write_bytes(saved.SerializeToString())
    assert predict(load(half_plus_two)) == [3.0, 4.0]


def test_a_load_reads_files_of_the_model_only(tmp_path: pathlib.Path) -> None:
    (tmp_path / "secret.txt").write_bytes(b"secret")
    model = tmp_path / "model"
    for filename in ("../../secret.txt", "link.txt"):
        shutil.rmtree(model, ignore_errors=True)
        write_model(model, asset_model(filename))
        (model / "assets").mkdir()
        (model / "assets" / "link.txt").symlink_to(tmp_path / "secret.txt")
        with pytest.raises(PermissionDeniedError, match=f"it may read files in: {model}"):
            load(model)


def test_steps_after_the_load_have_the_gate_of_the_session(tmp_path: pathlib.Path) -> None:
    write_model(tmp_path, asset_model("word.txt"))
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "word.txt").write_bytes(b"hello")
    (tmp_path / "other.txt").write_bytes(b"other")
    path = np.array(f"{tmp_path}/other.txt".encode(), object)
    open_to_all = load(tmp_path)
    open_to_all.session.run({"path": path}, targets=["init"])
    assert open_to_all.session.run({}, ["read"])[0].item() == b"other"


def counter() -> SavedModelBundle:
    return load(FIXTURES / "counter")


def call(bundle: SavedModelBundle, session: object, signature: str) -> float:
    name = bundle.signatures[signature].outputs["output"].name
    (value,) = session.run({}, [name])  # type: ignore[attr-defined]
    return float(value)


def test_an_opened_session_starts_from_the_loaded_state() -> None:
    bundle = counter()
    assert call(bundle, bundle.session, "incr_counter") == 1
    first, shared = bundle.open_session(SessionOptions())
    second, _ = bundle.open_session(SessionOptions())
    assert shared
    assert call(bundle, first, "get_counter") == 0
    assert [call(bundle, first, "incr_counter") for _ in range(3)] == [1, 2, 3]
    assert call(bundle, second, "get_counter") == 0
    assert call(bundle, bundle.session, "get_counter") == 1
    first.close()
    assert call(bundle, second, "incr_counter") == 1


def test_what_restored_a_model_is_not_kept() -> None:
    """Its nodes were a third of the objects of a loaded model, and no session runs them again."""
    bundle = counter()
    assert isinstance(bundle.session, DirectSession)
    cache = bundle.session.executor_cache
    assert (len(cache), cache.bytes_held) == (0, 0)
    restored = cache.misses
    assert restored > 0
    assert call(bundle, bundle.session, "incr_counter") == 1
    assert (len(cache), cache.misses) == (1, restored + 1)


def test_opened_sessions_share_the_weights() -> None:
    bundle = load(FIXTURES / "mlp_small")
    opened, shared = bundle.open_session(SessionOptions())
    assert shared
    mine, theirs = weights(opened), weights(bundle.session)
    assert mine.keys() == theirs.keys()
    assert all(mine[name] is theirs[name] for name in mine)


def weights(session: object) -> dict[tuple[str, str], np.ndarray]:
    assert isinstance(session, DirectSession)
    found = {}
    for container, name, resource in session.resources:
        assert isinstance(resource, Variable)
        value = resource.peek()
        assert value is not None
        found[container, name] = value
    return found


def test_variables_that_are_stored_twice_are_held_once() -> None:
    bundle = load(FIXTURES / "mlp_small")
    arrays = weights(bundle.session).values()
    assert len(arrays) == 8
    assert len({id(array) for array in arrays}) == 4


def queue_model() -> pb.MetaGraphDef:
    """A model whose init op enqueues an element; sessions can't share a queue's state."""
    graph = Graph()
    types = [DataType.FLOAT]
    queue = graph.add("FIFOQueueV2", name="queue", component_types=types, shared_name="queue")[0]
    graph.add("QueueEnqueueV2", queue, [np.float32(7)], name="init")
    graph.add("QueueSizeV2", queue, name="size")
    graph.add("QueueDequeueV2", queue, name="take", component_types=types)
    meta_graph = pb.MetaGraphDef(graph_def=graph.graph_def)
    meta_graph.collection_def[MAIN_OP_COLLECTION].node_list.value.append("init")
    return meta_graph


def test_state_that_cannot_be_shared_is_initialised_again(tmp_path: pathlib.Path) -> None:
    write_model(tmp_path, queue_model())
    bundle = load(tmp_path)
    opened, shared = bundle.open_session(SessionOptions())
    assert not shared
    assert opened.run({}, ["take"]) == [7.0]
    assert opened.run({}, ["size"]) == [0]
    assert bundle.session.run({}, ["size"]) == [1]


def kernel_less_model(signature_output: str) -> pb.MetaGraphDef:
    graph = Graph()
    graph.add("Const", name="two", dtype=np.float32, value=np.float32(2))
    graph.add("TPUReplicatedInput", [np.float32(2)], name="tpu")
    meta_graph = pb.MetaGraphDef(graph_def=graph.graph_def)
    meta_graph.signature_def["s"].outputs["y"].name = signature_output
    return meta_graph


def test_an_op_without_kernel_that_a_signature_reaches(tmp_path: pathlib.Path) -> None:
    write_model(tmp_path, kernel_less_model("tpu:0"))
    with pytest.raises(InvalidArgumentError) as caught:
        load(tmp_path)
    assert caught.value.message == (
        f"No OpKernel was registered to support these ops of {tmp_path}: "
        "signature s: TPUReplicatedInput"
    )


def test_an_op_without_kernel_that_no_signature_reaches(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_model(tmp_path, kernel_less_model("two:0"))
    bundle = load(tmp_path)
    assert bundle.session.run({}, ["two"]) == [2.0]
    assert bundle.report.without_kernel == {"TPUReplicatedInput": ["tpu"]}
    assert caplog.messages == [f"{tmp_path}: ops without kernel (nodes): TPUReplicatedInput (1)"]
    with pytest.raises(InvalidArgumentError, match="No OpKernel was registered to support Op"):
        bundle.session.run({}, ["tpu"])


def test_kernels_of_ones_own_count(tmp_path: pathlib.Path) -> None:
    write_model(tmp_path, kernel_less_model("tpu:0"))
    own = KernelDef("TPUReplicatedInput", lambda x: x + 1)
    bundle = load(tmp_path, kernels=(own,))
    assert bundle.session.run({}, ["tpu"]) == [3.0]
