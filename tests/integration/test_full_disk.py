"""A full disk, wherever the program writes: a clear error, and no half file under a final name."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

import protos as pb
import runtime.client as tf
from runtime.api import OpError, SessionOptions, export_bundle, load_saved_model, new_session
from runtime.foundation.errors import OutOfRangeError
from runtime.framework.dtypes import DataType
from runtime.framework.io.file_gate import AllowAll
from runtime.framework.io.record_files import tf_records
from runtime.framework.io.snapshot_files import SnapshotWriter, read_metadata
from runtime.framework.io.tensor_bundle_merge import merge_bundles
from runtime.framework.io.tensor_bundle_reader import TensorBundleReader
from runtime.framework.io.tensor_bundle_writer import TensorBundleWriter
from runtime.kernels.io.summary_writers import SummaryFileWriter
from server.main import main
from tests.conformance.case import Graph
from tests.faults import files_below, full_disk
from tests.saved_model_corpus import FIXTURES

Writer = Callable[[pathlib.Path, int], None]  # (folder, contents)


def run_node(op: str, *inputs: object, **attrs: object) -> None:
    """Run a graph of one op."""
    graph = Graph()
    graph.add(op, *inputs, name="write", **attrs)
    session = new_session(SessionOptions())
    session.create(graph.graph_def)
    session.run({}, (), ["write"])


def strings(*values: str) -> np.ndarray:
    return np.array([value.encode() for value in values], object)


def path(file: pathlib.Path) -> np.ndarray:
    return np.array(str(file).encode(), object)


def save_v2(folder: pathlib.Path, contents: int) -> None:
    tensors = [np.full(3000, contents, np.float32), strings("text" * contents)]
    run_node("SaveV2", path(folder / "checkpoint"), strings("a", "b"), strings("", ""), tensors)


def save_v1(folder: pathlib.Path, contents: int) -> None:
    run_node("Save", path(folder / "v1"), strings("a"), [np.full(3000, contents, np.float32)])


def write_file(folder: pathlib.Path, contents: int) -> None:
    run_node("WriteFile", path(folder / "file"), np.array(b"%d" % contents * 5000, object))


def save_with_a_saver(folder: pathlib.Path, contents: int) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.Variable(np.full(3000, contents, np.float32), name="v")
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, folder / "model")


def write_meta_graph(folder: pathlib.Path, contents: int) -> None:
    with tf.Graph().as_default():
        tf.constant(np.arange(1000, dtype=np.float32) + contents)
        tf.train.export_meta_graph(str(folder / "model.meta"))


def trace(folder: pathlib.Path, contents: int) -> None:
    x = f"x=[[{contents}]]"
    arguments = ["run", str(FIXTURES / "half_plus_two"), "--feed", x, "--trace"]
    code = main([*arguments, str(folder / "trace"), "--output", str(folder / "y.npz")])
    if code:
        raise OutOfRangeError("exit code 1")


WRITERS: tuple[Writer, ...] = (
    save_v2, save_v1, write_file, save_with_a_saver, write_meta_graph, trace,
)  # fmt: skip


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_what_was_there_remains(write: Writer, tmp_path: pathlib.Path) -> None:
    write(tmp_path, 1)
    before = files_below(tmp_path)
    largest = max(map(len, before.values()))
    failed = 0
    for free_bytes in (0, 1, 50, largest // 2, largest - 1):
        with full_disk(free_bytes):
            try:
                write(tmp_path, 2)
            except OutOfRangeError as error:
                assert "File too large" in error.message or error.message == "exit code 1"
                failed += 1
        after = files_below(tmp_path)
        assert after.keys() == before.keys(), "a temporary file was left"
    assert failed >= 4
    with full_disk(0), pytest.raises(OpError):
        write(tmp_path, 2)
    write(tmp_path, 1)
    assert files_below(tmp_path).keys() == before.keys()


def test_an_overwritten_checkpoint_is_the_old_one_or_the_new_one(tmp_path: pathlib.Path) -> None:
    save_v2(tmp_path, 1)
    before = files_below(tmp_path)
    for free_bytes in range(0, max(map(len, before.values())), 997):
        with full_disk(free_bytes), pytest.raises(OutOfRangeError, match="File too large"):
            save_v2(tmp_path, 2)
        assert files_below(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "code"), [(["version"], 1), (["show", str(FIXTURES / "half_plus_two")], 1)]
)
def test_what_can_not_be_printed_is_told(arguments: list[str], code: int) -> None:
    command = [sys.executable, "-m", "server.main", *arguments]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
        assert done.stderr.decode() == (
            "runstep: RESOURCE_EXHAUSTED: standard output; No space left on device\n"
        )
        assert done.returncode == code
        silent = subprocess.run(command, stdout=full, stderr=full, check=False)
        assert silent.returncode == code


def test_merging_leaves_the_parts_as_they_were(tmp_path: pathlib.Path) -> None:
    prefixes = [str(tmp_path / name) for name in "ab"]
    for prefix in prefixes:
        with TensorBundleWriter(prefix, AllowAll()) as writer:
            writer.add(prefix, np.arange(10), DataType.INT64)
            writer.finish()
    before = files_below(tmp_path)
    with full_disk(10), pytest.raises(OutOfRangeError, match="File too large"):
        merge_bundles(prefixes, str(tmp_path / "merged"), AllowAll())
    assert files_below(tmp_path) == before
    (tmp_path / "merged.data-00001-of-00002").mkdir()  # the second file can't be moved there
    with pytest.raises(OpError, match="Is a directory"):
        merge_bundles(prefixes, str(tmp_path / "merged"), AllowAll())
    assert files_below(tmp_path) == before
    (tmp_path / "merged.data-00001-of-00002").rmdir()
    merge_bundles(prefixes, str(tmp_path / "merged"), AllowAll())
    with TensorBundleReader(str(tmp_path / "merged"), AllowAll()) as reader:
        assert reader.names == prefixes


@pytest.mark.parametrize("freeze", [False, True])
@pytest.mark.parametrize("is_new", [False, True])
def test_an_export_leaves_nothing(tmp_path: pathlib.Path, freeze: bool, is_new: bool) -> None:
    bundle = load_saved_model(SessionOptions(), None, str(FIXTURES / "asset_table"), {"serve"})
    out = tmp_path / "out"
    if not is_new:
        out.mkdir()
    for free_bytes in (0, 1, 100):
        with full_disk(free_bytes), pytest.raises(OutOfRangeError, match="File too large"):
            export_bundle(bundle, str(out), freeze)
        assert out.exists() is not is_new
        assert list(tmp_path.rglob("*")) == ([] if is_new else [out])
    export_bundle(bundle, str(out), freeze)
    assert (out / "saved_model.pb").exists()


def test_a_printed_line_is_whole_or_missing(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log"

    def print_line() -> None:
        line = np.array(b"a line", object)
        run_node("PrintV2", line, output_stream=f"file://{log}", end="\n")

    print_line()
    with full_disk(10), pytest.raises(OutOfRangeError, match="log; File too large"):
        print_line()
    print_line()
    assert log.read_text() == "a line\n" * 2


def test_event_files_end_with_a_whole_event(tmp_path: pathlib.Path) -> None:
    event = pb.Event(step=7, summary=pb.Summary(value=[{"tag": "x" * 100}])).SerializeToString()
    for free_bytes in (0, 10):
        with full_disk(free_bytes), pytest.raises(OutOfRangeError, match="File too large"):
            SummaryFileWriter(str(tmp_path), 0, 100_000, "", AllowAll())
    assert files_below(tmp_path) == {}
    writer = SummaryFileWriter(str(tmp_path), 0, 100_000, "", AllowAll())
    with full_disk(300):
        writer.write(event)
        with pytest.raises(OutOfRangeError, match="File too large"):
            for _ in range(2):
                writer.write(event)
    writer.write(event)
    writer.close()
    (file,) = tmp_path.iterdir()
    steps = [pb.Event.FromString(data).step for _, data in tf_records(str(file), "")]
    assert steps in ([0, 7, 7], [0, 7, 7, 7])


@pytest.mark.parametrize("compression", ["", "GZIP", "SNAPPY"])
def test_a_snapshot_that_lacks_an_element_is_never_complete(
    tmp_path: pathlib.Path, compression: str
) -> None:
    folder = str(tmp_path)
    noise = np.random.default_rng(1).integers(0, 255, 20_000, np.uint8)
    writer = SnapshotWriter(folder, compression, [DataType.UINT8], AllowAll())
    with full_disk(5000), pytest.raises(OutOfRangeError, match="File too large"):
        for _ in range(20):
            writer.add(0, (noise,))
    with pytest.raises(OutOfRangeError, match="File too large"):
        writer.add(0, (noise,))
    for end in (lambda: writer.finish(2), writer.begin_files, writer.close):
        with pytest.raises(OutOfRangeError, match="File too large"):
            end()
    metadata = read_metadata(folder, AllowAll())
    assert metadata is not None and not metadata.finalized
