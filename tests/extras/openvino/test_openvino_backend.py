"""What the runtime relies on in OpenVINO."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from runtime.clusters.dimensions import symbol
from runtime.clusters.emission import Emission
from runtime.clusters.emit_cluster import EmittedCluster
from runtime.clusters.model_proto import SerializedModel, serialize
from runtime.clusters.running.engine import Compilation, UncheckedRunError
from runtime.clusters.running.form_use import Use
from runtime.foundation.errors import CancelledError
from runtime.framework.dtypes import DataType

if importlib.util.find_spec("openvino") is None:  # importing it here would let it report
    pytest.skip("the extra openvino is not installed", allow_module_level=True)
from runtime.clusters import openvino_backend
from runtime.clusters.openvino_backend import CompiledModel

SIZE = 64
IDLE_SECONDS, MAX_BURNT_SECONDS = 0.1, 0.005


def products(count: int = 1) -> SerializedModel:
    """Products of `[batch, SIZE]` and a constant that is a third in every place."""
    emission = Emission()
    value = emission.input(DataType.FLOAT, (symbol("batch"), SIZE))
    weight = emission.constant(np.full((SIZE, SIZE), 1 / 3, np.float32))
    for _ in range(count):
        value = emission.op("MatMul", [value, weight], DataType.FLOAT, value.shape)
    return serialize(EmittedCluster(emission, (value,)), is_baked=True)


def compiled(use: Use = Use.WIDE) -> CompiledModel:
    return CompiledModel(products(), Compilation(use, 2 if use is Use.WIDE else 1))


def test_the_installed_engine_fits() -> None:
    assert openvino_backend.is_fit()


IMPORTS = """
import os, socket, sys, threading
asked = []
sys.addaudithook(lambda event, arguments: event.startswith("socket.") and asked.append(event))
from runtime.clusters import openvino_backend
openvino_backend._core().get_property("CPU", "FULL_DEVICE_NAME")
for thread in threading.enumerate():
    if thread is not threading.current_thread() and not thread.daemon:
        thread.join()
made = [os.path.join(folder, name) for folder, _, names in os.walk(sys.argv[1]) for name in names]
print(asked, made, "openvino_telemetry" in sys.modules)
"""


def test_the_engine_reports_nothing_to_its_maker(tmp_path: pathlib.Path) -> None:
    assert importlib.util.find_spec("openvino_telemetry") is not None  # it comes with openvino
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, str(tmp_path)],
        cwd=pathlib.Path(__file__).parents[3],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[] [] False\n"


@pytest.mark.parametrize("use", list(Use))
def test_float32_stays_float32_for_every_use(use: Use) -> None:
    x = np.linspace(0, 1, 3 * SIZE, dtype=np.float32).reshape(3, SIZE)
    x.flags.writeable = False
    before = x.copy()
    (got,) = compiled(use).run([x])
    np.testing.assert_allclose(got, x @ np.full((SIZE, SIZE), 1 / 3, np.float32), rtol=1e-5)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("use", list(Use))
def test_idle_threads_burn_no_processor_time(use: Use) -> None:
    model = compiled(use)
    x = np.ones((64, SIZE), np.float32) / SIZE
    burnt = []
    for _ in range(5):  # other threads of the test process may work in one of them
        model.run([x])
        began = time.process_time()
        threading.Event().wait(IDLE_SECONDS)
        burnt.append(time.process_time() - began)
    assert min(burnt) < MAX_BURNT_SECONDS


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e20])
def test_inputs_with_which_it_differs_do_not_count(value: float) -> None:
    with pytest.raises(UncheckedRunError, match="not finite, or very large"):
        compiled().run([np.full((1, SIZE), value, np.float32)])


@pytest.mark.parametrize(
    "array",
    [np.ones((1, SIZE)), np.ones((1, SIZE + 1), np.float32), np.ones((0, SIZE), np.float32)],
)
def test_other_types_and_sizes_are_refused(array: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"The model takes float32 \[-1, 64\], not"):
        compiled().run([array])


def test_a_run_that_was_stopped_before_it_began_raises() -> None:
    model = compiled()
    control = model.control()
    control.stop()
    x = np.ones((1, SIZE), np.float32)
    with pytest.raises(CancelledError, match="stopped before it began"):
        model.run([x], control)
    assert not model.is_busy
    assert model.run([x])[0].shape == (1, SIZE)


def test_a_processor_without_bfloat16_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text("flags\t\t: fpu avx512f\n")
    monkeypatch.setattr(openvino_backend, "_CPU_INFO", file)
    assert openvino_backend.unfit_precision("float32") == ""
    assert openvino_backend.unfit_precision("bfloat16") == (
        "the processor has neither avx512_bf16 nor amx_bf16"
    )
    file.write_text("flags\t\t: fpu amx_bf16\n")
    assert openvino_backend.unfit_precision("bfloat16") == ""
