"""Compiled models that processes share: the same results, from a file of which there is one."""

from __future__ import annotations

import logging
import pathlib
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from runtime.clusters import saved_models
from runtime.clusters.dimensions import symbol
from runtime.clusters.emission import Emission
from runtime.clusters.emit_cluster import EmittedCluster
from runtime.clusters.model_proto import SerializedModel, serialize
from runtime.clusters.running.interrupt import Interrupt
from runtime.foundation.shared_files import SharedFile, shared_files
from runtime.framework.dtypes import DataType
from tests.faults import full_disk

pytest.importorskip("onnxruntime")
from runtime.clusters.backend import VERSION, CompiledModel

SIZE = 16  # of the images
CHANNELS = 64
SECONDS = 30


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    path = tmp_path / "shared"
    path.mkdir()
    shared_files.use_folder(path)
    yield path
    shared_files.use_folder(None)


def network(scale: float = 1, width: int = 4096) -> SerializedModel:
    """Two convolutions, which the engine gives arrays of its own, and a product of matrices."""
    random = np.random.default_rng(5)
    emission = Emission()
    batch = symbol("batch")
    value = emission.input(DataType.FLOAT, (batch, CHANNELS, SIZE, SIZE))
    for _ in range(2):
        shape = (CHANNELS, CHANNELS, 3, 3)
        kernel = emission.constant(random.normal(0, 0.1, shape).astype(np.float32))
        pads = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
        value = emission.op("Conv", [value, kernel], DataType.FLOAT, value.shape, **pads)
    shape = (batch, CHANNELS, 1, 1)
    value = emission.op("GlobalAveragePool", [value], DataType.FLOAT, shape)
    flat = emission.op("Flatten", [value], DataType.FLOAT, (batch, CHANNELS))
    weight = random.normal(0, scale, (CHANNELS, width)).astype(np.float32)
    product = emission.op(
        "MatMul", [flat, emission.constant(weight)], DataType.FLOAT, (batch, width)
    )
    return serialize(EmittedCluster(emission, (product,)), is_baked=True)


X = np.random.default_rng(6).random((2, CHANNELS, SIZE, SIZE), np.float32)


def names_in(folder: pathlib.Path) -> list[str]:
    return sorted(path.name.partition(".")[2] for path in folder.iterdir())


def test_a_shared_model_gives_the_same_results(folder: pathlib.Path) -> None:
    shared_files.use_folder(None)
    expected = CompiledModel(network(), threads=1).run([X])[0]
    shared_files.use_folder(folder)
    first = CompiledModel(network(), threads=1)
    arrays = next(folder.glob("model-*.arrays"))
    made = arrays.stat().st_mtime_ns
    wide = CompiledModel(network(), threads=2)
    assert names_in(folder) == ["", "arrays", "onnx"]
    assert arrays.stat().st_mtime_ns == made
    for model in (first, wide):
        np.testing.assert_array_equal(model.run([X])[0], expected)
        assert pathlib.Path("/proc/self/maps").read_text().count(str(arrays)) > 0
    del first, model
    assert names_in(folder) == ["", "arrays", "onnx"]
    np.testing.assert_array_equal(wide.run([X])[0], expected)
    del wide
    assert names_in(folder) == []
    assert str(arrays) not in pathlib.Path("/proc/self/maps").read_text()


def test_a_model_with_other_arrays_is_another(folder: pathlib.Path) -> None:
    one, two = CompiledModel(network(1), threads=1), CompiledModel(network(2), threads=1)
    np.testing.assert_allclose(2 * one.run([X])[0], two.run([X])[0], rtol=1e-4, atol=1e-4)
    assert names_in(folder) == ["", "", "arrays", "arrays", "onnx", "onnx"]


def test_a_small_model_is_not_shared(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = network(width=8)
    size = sum(array.nbytes for array in small.arrays.values())
    assert size < saved_models.LEAST_BYTES
    model = CompiledModel(small, threads=1)
    assert names_in(folder) == []
    monkeypatch.setattr(saved_models, "LEAST_BYTES", size)
    shared = CompiledModel(small, threads=1)
    np.testing.assert_array_equal(model.run([X])[0], shared.run([X])[0])
    assert names_in(folder) == ["", "arrays", "onnx"]


@pytest.mark.parametrize("free_bytes", [100, 1 << 16, 1 << 19])
def test_a_full_disk_shares_nothing(
    folder: pathlib.Path, free_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    with full_disk(free_bytes), caplog.at_level(logging.WARNING):
        model = CompiledModel(network(), threads=1)
    assert "A compiled cluster is not shared with other processes" in caplog.text
    assert names_in(folder) == []
    assert np.isfinite(model.run([X])[0]).all()


def test_arrays_that_are_not_complete_are_not_mapped(folder: pathlib.Path) -> None:
    whole = CompiledModel(network(), threads=1)
    message = next(folder.glob("model-*.onnx")).read_bytes()
    arrays = next(folder.glob("model-*.arrays")).read_bytes()

    def save(path: pathlib.Path, name: str) -> None:
        path.write_bytes(message)
        path.with_name(name).write_bytes(arrays[:-1])

    with pytest.raises(OSError, match=f"has {len(arrays) - 1} bytes, {len(arrays)} were to be"):
        saved_models.saved_model(network(3), VERSION, save, lambda: None)
    assert names_in(folder) == ["", "arrays", "onnx"]
    del whole


def test_an_engine_that_cannot_save_compiles(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def damaged(path: pathlib.Path) -> pathlib.Path:
        found = path.with_name(f"{path.name}.onnx")
        if found.exists():
            found.write_bytes(b"damage")
        return found

    monkeypatch.setattr("runtime.clusters.backend.message_path", damaged)
    with caplog.at_level(logging.WARNING):
        model = CompiledModel(network(), threads=1)
    assert "is not shared" in caplog.text
    assert names_in(folder) == []
    assert np.isfinite(model.run([X])[0]).all()


def test_an_interrupt_ends_the_wait_for_another_process(folder: pathlib.Path) -> None:
    begun, end = threading.Event(), threading.Event()
    files: list[SharedFile] = []

    def slow(path: pathlib.Path, name: str) -> None:
        begun.set()
        assert end.wait(SECONDS)
        raise ValueError("not saved")

    def other() -> None:
        with pytest.raises(ValueError, match="not saved"):
            files.append(saved_models.saved_model(network(), VERSION, slow, lambda: None))

    thread = threading.Thread(target=other)
    thread.start()
    assert begun.wait(SECONDS)
    interrupt = Interrupt()
    interrupt.set()
    with pytest.raises(Exception, match="not needed any more"):
        CompiledModel(network(), threads=1, interrupt=interrupt)
    end.set()
    thread.join(SECONDS)
    assert files == []
    assert CompiledModel(network(), threads=1).run([X])[0].shape == (2, 4096)
