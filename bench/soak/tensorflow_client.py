"""TensorFlow's own client of a soak: a program for an interpreter that has tensorflow.

    PYTHON bench/soak/tensorflow_client.py grpc://HOST:PORT

It opens sessions, runs steps, extends and closes them until its standard input ends. Each second it
prints a line of JSON: {"requests", "wrong": [text], "failed": [[code, text]]}.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from typing import Any

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1


class Seen:
    """What happened since the last line."""

    def __init__(self) -> None:
        self.requests = 0
        self.wrong: list[str] = []
        self.failed: list[tuple[str, str]] = []

    def check(self, got: Any, expected: Any) -> None:
        """Count a request and compare its answer."""
        self.requests += 1
        if not np.allclose(got, expected, rtol=1e-4, atol=1e-4):
            self.wrong.append(f"{got!r:.200} instead of {expected!r:.200}")


def life(target: str, seen: Seen, random: np.random.Generator) -> None:
    """Use one session from its start to its end."""
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 16], "x")
        weights = random.normal(size=(16, 4)).astype(np.float32)
        y = tf.matmul(x, tf.constant(weights)) + 1
        count = v1.get_variable("soak_tensorflow", initializer=0.0, use_resource=True)
        add = count.assign_add(1.0, read_value=True)
        with v1.Session(target) as session:
            session.run(count.initializer)
            for step in range(1, 21):
                value = random.normal(size=(3, 16)).astype(np.float32)
                seen.check(session.run(y, {x: value}), value @ weights + 1)
                seen.check(session.run(add), step)
            extended = tf.reduce_sum(y)  # extends the session's graph
            seen.check(session.run(extended, {x: value}), (value @ weights + 1).sum())
            queue = tf.queue.FIFOQueue(1, tf.float32, shared_name="soak_tensorflow_queue")
            take = queue.dequeue()
            options = v1.RunOptions(timeout_in_ms=20)
            try:
                session.run(take, options=options)
                seen.wrong.append("a step succeeded instead of DEADLINE_EXCEEDED")
            except tf.errors.DeadlineExceededError:
                seen.requests += 1


def main() -> None:
    target, seen, random = sys.argv[1], Seen(), np.random.default_rng(1)
    told = time.monotonic()
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        try:
            life(target, seen, random)
        except tf.errors.OpError as error:
            seen.failed.append((type(error).__name__, str(error)[:300]))
        if time.monotonic() - told > 1:
            told = time.monotonic()
            print(json.dumps(vars(seen)), flush=True)
            seen = Seen()
    print(json.dumps(vars(seen)), flush=True)


if __name__ == "__main__":
    main()
