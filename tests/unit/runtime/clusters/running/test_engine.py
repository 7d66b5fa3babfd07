"""The engine of a choice, what stands in for it, and what is said of that."""

from __future__ import annotations

import logging
import types
from typing import Any

import pytest

from runtime.clusters.engine_choice import BFLOAT16, DEFAULT_CHOICE, FLOAT32, EngineChoice
from runtime.clusters.running import engine
from runtime.clusters.running.engine import (
    EngineUse,
    describe_engine,
    find_engine,
    known_use,
    unmet_choices,
)

Found = dict[str, tuple[Any, Any]]
OPENVINO_BF16 = EngineChoice("openvino", BFLOAT16)


def backend(name: str, unfit: str = "") -> Any:
    def unfit_precision(precision: str) -> str:
        return unfit if precision == BFLOAT16 else ""

    return types.SimpleNamespace(NAME=name, VERSION="1.0", unfit_precision=unfit_precision)


def missing(name: str) -> tuple[None, Any]:
    return None, engine._Fault(f"{name} is missing", is_usual=True)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Found:
    """What is installed, by name: nothing at first."""
    found: Found = {"onnxruntime": missing("ONNX Runtime"), "openvino": missing("OpenVINO")}
    monkeypatch.setattr(engine, "_load", found.__getitem__)
    monkeypatch.setattr(engine, "_found", {})
    monkeypatch.setattr(engine, "_reasons", {})
    return found


def test_the_default_is_onnx_runtime(installed: Found) -> None:
    installed["onnxruntime"] = backend("ONNX Runtime"), None
    installed["openvino"] = backend("OpenVINO"), None
    assert known_use(DEFAULT_CHOICE) is None
    found = find_engine()
    assert found is not None
    assert (found.name, found.precision) == ("ONNX Runtime 1.0", FLOAT32)
    assert known_use(DEFAULT_CHOICE) == EngineUse("ONNX Runtime 1.0", FLOAT32, "")
    assert unmet_choices() == {}


def test_the_default_is_openvino_where_only_that_is_installed(installed: Found) -> None:
    installed["openvino"] = backend("OpenVINO"), None
    found = find_engine()
    assert found is not None
    assert (found.name, found.precision) == ("OpenVINO 1.0", FLOAT32)
    assert unmet_choices() == {}


def test_without_an_engine_one_line_says_so(
    installed: Found, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert find_engine() is None
    assert find_engine() is None
    (record,) = caplog.records
    assert record.levelname == "INFO"
    assert record.message == (
        "Clusters run on numpy kernels, because ONNX Runtime is missing; OpenVINO is missing"
    )


def test_onnx_runtime_stands_in_for_openvino(
    installed: Found, caplog: pytest.LogCaptureFixture
) -> None:
    installed["onnxruntime"] = backend("ONNX Runtime"), None
    assert find_engine(OPENVINO_BF16) is not None
    assert find_engine(OPENVINO_BF16) is not None
    use = EngineUse("ONNX Runtime 1.0", FLOAT32, "OpenVINO is missing")
    assert unmet_choices() == {OPENVINO_BF16: use}
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.message == (
        "Clusters run on ONNX Runtime 1.0 in float32 instead of OpenVINO in bfloat16, because "
        "OpenVINO is missing"
    )


def test_float32_stands_in_for_bfloat16(installed: Found, caplog: pytest.LogCaptureFixture) -> None:
    installed["openvino"] = backend("OpenVINO", "the processor has it not"), None
    found = find_engine(OPENVINO_BF16)
    assert found is not None
    assert (found.name, found.precision) == ("OpenVINO 1.0", FLOAT32)
    assert known_use(OPENVINO_BF16) == EngineUse(
        "OpenVINO 1.0", FLOAT32, "the processor has it not"
    )
    assert [each.levelname for each in caplog.records] == ["WARNING"]


def test_what_an_engine_has_on_this_machine(installed: Found) -> None:
    assert describe_engine("openvino") == ""
    installed["openvino"] = backend("OpenVINO"), None
    assert describe_engine("openvino") == "OpenVINO 1.0 in float32 or bfloat16"
    installed["openvino"] = backend("OpenVINO", "the processor has it not"), None
    assert describe_engine("openvino") == (
        "OpenVINO 1.0 in float32 only, because the processor has it not"
    )


def test_an_engine_that_does_not_fit_is_a_warning(
    installed: Found, caplog: pytest.LogCaptureFixture
) -> None:
    installed["onnxruntime"] = None, engine._Fault("ONNX Runtime 1.0 is too old")
    assert find_engine() is None
    assert [each.levelname for each in caplog.records] == ["WARNING"]
