"""Which engine compiles clusters and in which precision, as options and settings name them."""

from __future__ import annotations

import dataclasses

from runtime.foundation.errors import InvalidArgumentError

AUTO, ONNX_RUNTIME, OPENVINO = "auto", "onnxruntime", "openvino"
FLOAT32, BFLOAT16 = "float32", "bfloat16"
# Name of a choice → the engines that are tried, in this order.
ENGINES: dict[str, tuple[str, ...]] = {
    AUTO: (ONNX_RUNTIME, OPENVINO),
    ONNX_RUNTIME: (ONNX_RUNTIME,),
    OPENVINO: (OPENVINO, ONNX_RUNTIME),
}
# What may be written for a precision, and the precision.
PRECISIONS = {FLOAT32: FLOAT32, "f32": FLOAT32, BFLOAT16: BFLOAT16, "bf16": BFLOAT16}


@dataclasses.dataclass(frozen=True, slots=True)
class EngineChoice:
    """The engine that is wanted, and the precision in which it computes with float32 tensors."""

    engine: str = AUTO
    precision: str = FLOAT32


DEFAULT_CHOICE = EngineChoice()


def engine_choice(engine: str, precision: str, where: str = "SessionOptions") -> EngineChoice:
    """Return a choice; raise InvalidArgumentError, which says `where` it was made, if it is none.

    Only OpenVINO computes in bfloat16, and only whoever names both gets it.
    """
    if engine not in ENGINES:
        raise InvalidArgumentError(
            f"{where}.engine is {engine!r}; expected one of {', '.join(ENGINES)}"
        )
    if precision not in PRECISIONS:
        raise InvalidArgumentError(
            f"{where}.precision is {precision!r}; expected one of {', '.join(PRECISIONS)}"
        )
    choice = EngineChoice(engine, PRECISIONS[precision])
    if choice.precision == BFLOAT16 and engine != OPENVINO:
        raise InvalidArgumentError(
            f"{where}.precision is {BFLOAT16}, which requires engine {OPENVINO}, not {engine}"
        )
    return choice
