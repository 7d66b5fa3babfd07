"""A loop of version 1, as TensorFlow's `while_loop` adds it to a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import runtime.client as tf
from runtime.client import ops
from runtime.client.ops.control_flow import merge, switch

Body = Callable[[tf.Tensor, Callable[[Any], tf.Tensor]], tf.Tensor]


def build(initial: tf.Tensor, times: int, body: Body) -> tf.Tensor:
    """Apply `body` to `initial` so many times, and return the result.

    `body` takes the variable, and a function that makes an invariant of a tensor.
    """
    frame = tf.get_default_graph().unique_name("loop")

    def around(tensor: Any) -> tf.Tensor:
        result: tf.Tensor = ops.Enter(tensor, frame_name=frame, is_constant=True)
        return result

    entered = [ops.Enter(each, frame_name=frame) for each in (tf.constant(0), initial)]
    merged = [merge([each, each])[0] for each in entered]
    pred = ops.LoopCond(ops.Less(merged[0], around(tf.constant(times))))
    (end, count), (result, value) = (switch(each, pred) for each in merged)
    following = [count + around(tf.constant(1)), body(ops.Identity(value), around)]
    for enter, variable, value in zip(entered, merged, following, strict=True):
        variable.op.connect([enter, ops.NextIteration(value)], [])  # the back edge
    ops.Exit(end)
    left: tf.Tensor = ops.Exit(result)
    return left
