"""What the runtime relies on in the engine's threads: idle ones burn no processor time."""

from __future__ import annotations

import ctypes
import threading
import time

import numpy as np
import pytest

from runtime.clusters.backend import CompiledModel, RunControl, is_fit, return_memory
from runtime.clusters.dimensions import symbol
from runtime.clusters.emission import Emission
from runtime.clusters.emit_cluster import EmittedCluster
from runtime.clusters.model_proto import SerializedModel, serialize
from runtime.clusters.running.interrupt import Interrupt
from runtime.foundation.machine_memory import resident_bytes
from runtime.framework.dtypes import DataType

IDLE_SECONDS = 0.1
# The engine's default spins for tens of ms after a run. The key that limits this is accepted
# silently by versions that don't know it.
MAX_BURNT_SECONDS = 0.005


def products(count: int) -> SerializedModel:
    """A model of `count` products of matrices `[batch, 256]` and `[256, 256]`."""
    emission = Emission()
    value = emission.input(DataType.FLOAT, (symbol("batch"), 256))
    weight = emission.constant(np.full((256, 256), 1 / 256, np.float32))
    for _ in range(count):
        value = emission.op("MatMul", [value, weight], DataType.FLOAT, value.shape)
    return serialize(EmittedCluster(emission, (value,)), is_baked=True)


def test_the_installed_engine_fits() -> None:
    assert is_fit()


def test_idle_threads_burn_no_processor_time() -> None:
    model = CompiledModel(products(8), threads=2)
    x = np.ones((64, 256), np.float32)
    burnt = []
    for _ in range(5):  # other threads of the test process may work in one of them
        model.run([x])
        began = time.process_time()
        threading.Event().wait(IDLE_SECONDS)
        burnt.append(time.process_time() - began)
    assert min(burnt) < MAX_BURNT_SECONDS


def test_a_stopped_run_raises_and_leaves_the_model_usable() -> None:
    model = CompiledModel(products(2), threads=1)
    x = np.ones((1, 256), np.float32)
    control = RunControl()
    control.stop()
    with pytest.raises(Exception, match="terminate"):
        model.run([x], control)
    np.testing.assert_allclose(model.run([x])[0], x, rtol=1e-5)


def test_an_interrupt_ends_a_compilation() -> None:
    interrupt = Interrupt()
    interrupt.set()
    with pytest.raises(Exception, match=r"(?i)cancel"):
        CompiledModel(products(2), threads=1, interrupt=interrupt)


def resident_megabytes() -> float:
    c = ctypes.CDLL(None)
    if hasattr(c, "malloc_trim"):
        c.malloc_trim(0)
    return float((resident_bytes() or 0) / 1e6)


def test_the_memory_of_runs_is_common_and_is_returned() -> None:
    models = [CompiledModel(products(2), threads=1) for _ in range(3)]
    x = np.ones((40_000, 256), np.float32)  # 41 MB
    return_memory()
    before = resident_megabytes()
    for model in models:
        model.run([x])
    held = resident_megabytes() - before
    assert 30 < held < 150, "as much as the runs of one model"
    return_memory()
    assert resident_megabytes() - before < 10
    np.testing.assert_allclose(models[0].run([x])[0], x, rtol=1e-5)


def test_memory_is_returned_while_models_run() -> None:
    model = CompiledModel(products(4), threads=1)
    x = np.ones((512, 256), np.float32)
    ended = threading.Event()
    wrong: list[int] = []

    def run() -> None:
        while not ended.is_set():
            (y,) = model.run([x])
            if not np.allclose(y, x, rtol=1e-5):
                wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        return_memory()
    ended.set()
    for thread in threads:
        thread.join()
    assert not wrong
