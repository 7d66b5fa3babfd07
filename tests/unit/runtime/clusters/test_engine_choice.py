"""Which engines and precisions may be chosen, and what is said of others."""

from __future__ import annotations

import pytest

from runtime.clusters.engine_choice import DEFAULT_CHOICE, EngineChoice, engine_choice
from runtime.foundation.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("engine", "precision", "expected"),
    [
        ("auto", "float32", DEFAULT_CHOICE),
        ("onnxruntime", "f32", EngineChoice("onnxruntime", "float32")),
        ("openvino", "float32", EngineChoice("openvino", "float32")),
        ("openvino", "bf16", EngineChoice("openvino", "bfloat16")),
        ("openvino", "bfloat16", EngineChoice("openvino", "bfloat16")),
    ],
)
def test_a_choice_may_be_written_short(engine: str, precision: str, expected: EngineChoice) -> None:
    assert engine_choice(engine, precision) == expected


@pytest.mark.parametrize(
    ("engine", "precision", "message"),
    [
        (
            "tensorrt",
            "float32",
            "SessionOptions.engine is 'tensorrt'; expected one of auto, onnxruntime, openvino",
        ),
        (
            "openvino",
            "int8",
            "SessionOptions.precision is 'int8'; expected one of float32, f32, bfloat16, bf16",
        ),
        (
            "auto",
            "bf16",
            "SessionOptions.precision is bfloat16, which requires engine openvino, not auto",
        ),
    ],
)
def test_another_choice_is_refused(engine: str, precision: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        engine_choice(engine, precision)
    assert caught.value.message == message
