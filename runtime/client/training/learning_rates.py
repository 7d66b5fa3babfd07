"""Learning rate schedules, which compute the rate from the global step.

The global step is an integer tensor or variable that counts training steps. The computed rate has
the type of `learning_rate`, which is called `rate` in the formulas.

TF: tensorflow/python/keras/optimizer_v2/legacy_learning_rate_decay.py
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from runtime.client.framework.argument_types import TensorLike
from runtime.client.framework.element_types import as_array
from runtime.client.framework.graph import get_default_graph
from runtime.client.framework.operation import Tensor
from runtime.client.ops import op_function
from runtime.client.ops.construction import convert_to_tensor
from runtime.framework.dtypes import DataType


def exponential_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return rate × decay_rate ^ (global_step / decay_steps).

    If `staircase` is set, the exponent is rounded down.
    """
    with get_default_graph().name_scope(name or "ExponentialDecay") as scope:
        rate, progress = _progress(learning_rate, global_step, decay_steps, staircase)
        power = op_function("Pow")(_like(rate, decay_rate), progress)
        return _one("Mul", rate, power, scope)


def natural_exp_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return rate × e ^ (−decay_rate × global_step / decay_steps).

    If `staircase` is set, global_step / decay_steps is rounded down.
    """
    with get_default_graph().name_scope(name or "NaturalExpDecay") as scope:
        rate, progress = _progress(learning_rate, global_step, decay_steps, staircase)
        power = op_function("Exp")(-_like(rate, decay_rate) * progress)
        return _one("Mul", rate, power, scope)


def inverse_time_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return rate / (1 + decay_rate × global_step / decay_steps).

    If `staircase` is set, global_step / decay_steps is rounded down.
    """
    with get_default_graph().name_scope(name or "InverseTimeDecay") as scope:
        rate, progress = _progress(learning_rate, global_step, decay_steps, staircase)
        return _one("RealDiv", rate, _like(rate, decay_rate) * progress + 1, scope)


def polynomial_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    end_learning_rate: TensorLike = 0.0001,
    power: TensorLike = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return (rate − end) × (1 − global_step / decay_steps) ^ power + end.

    Here `end` is `end_learning_rate`. After `decay_steps` the rate stays at `end`. If `cycle` is
    set, `decay_steps` is instead replaced by its smallest multiple that is not below the global
    step.
    """
    with get_default_graph().name_scope(name or "PolynomialDecay") as scope:
        rate = convert_to_tensor(learning_rate, name="learning_rate")
        end = _like(rate, end_learning_rate)
        step, steps = _like(rate, global_step), _like(rate, decay_steps)
        if cycle:
            times = op_function("Ceil")(step / steps)
            is_first = op_function("Equal")(step, _like(rate, 0.0))
            steps = steps * op_function("SelectV2")(is_first, _like(rate, 1.0), times)
        else:
            step = op_function("Minimum")(step, steps)
        left = op_function("Pow")(1 - step / steps, _like(rate, power))
        return _one("AddV2", (rate - end) * left, end, scope)


def cosine_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    alpha: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """Return half a period of a cosine, from `rate` down to `alpha` × `rate`.

    The rate falls over `decay_steps`, and stays at its last value afterwards.
    """
    with get_default_graph().name_scope(name or "CosineDecay") as scope:
        rate = convert_to_tensor(learning_rate, name="learning_rate")
        steps = _like(rate, decay_steps)
        done = op_function("Minimum")(_like(rate, global_step), steps) / steps
        wave = (op_function("Cos")(done * math.pi) + 1) * 0.5
        return _one("Mul", rate, wave * (1 - alpha) + alpha, scope)


def piecewise_constant(
    x: TensorLike,
    boundaries: Sequence[TensorLike],
    values: Sequence[TensorLike],
    name: str | None = None,
) -> Tensor:
    """Return the value for the interval between `boundaries` in which `x` lies.

    It is values[0] if x ≤ boundaries[0], else values[1] if x ≤ boundaries[1], …, else the last
    value. Raises ValueError if there is not one more value than boundaries.
    """
    if len(boundaries) != len(values) - 1:
        raise ValueError("The length of boundaries should be 1 less than the length of values")
    with get_default_graph().name_scope(name or "PiecewiseConstant") as scope:
        place = convert_to_tensor(x)
        limits = op_function("Pack")([_like(place, each) for each in boundaries])
        passed = op_function("Cast")(op_function("Greater")(place, limits), DstT=DataType.INT32)
        index = op_function("Sum")(passed, [0])
        table = convert_to_tensor(list(values), name="values")
        return _one("GatherV2", table, index, 0, scope)


piecewise_constant_decay = piecewise_constant


def _progress(
    learning_rate: TensorLike, global_step: TensorLike, decay_steps: TensorLike, staircase: bool
) -> tuple[Tensor, Tensor]:
    """Return the rate and global_step / decay_steps, which is rounded down if `staircase` is set.

    Raises ValueError if `global_step` is None.
    """
    if global_step is None:
        raise ValueError("global_step is required for a decay of the learning rate.")
    rate = convert_to_tensor(learning_rate, name="learning_rate")
    progress = _like(rate, global_step) / _like(rate, decay_steps)
    return rate, op_function("Floor")(progress) if staircase else progress


def _like(rate: Tensor, value: TensorLike) -> Tensor:
    """Convert a number or tensor to the type of `rate`."""
    if isinstance(value, int | float):
        return convert_to_tensor(as_array(value).astype(rate.dtype.numpy))
    tensor = convert_to_tensor(value)
    return tensor if tensor.dtype is rate.dtype else _cast(tensor, rate.dtype)


def _cast(tensor: Tensor, dtype: DataType) -> Tensor:
    result: Tensor = op_function("Cast")(tensor, DstT=dtype)
    return result


def _one(op: str, *arguments: TensorLike) -> Tensor:
    """Add an operation and return its output; the last argument is the operation's name."""
    *inputs, name = arguments
    result: Tensor = op_function(op)(*inputs, name=name)
    return result
