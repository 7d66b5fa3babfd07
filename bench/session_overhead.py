"""Time `Session.run` on chains of small ops and on wide graphs of MatMuls.

    python -m bench.session_overhead [--tensorflow PYTHON]

Runstep and TensorFlow run the same graphs with one thread for each kernel, so that only the
parallelism between nodes counts. PYTHON is an interpreter with TensorFlow, which runs this file.
Runstep's steps are measured when nothing is decided about them in the background any more. The
constants of a chain differ. TensorFlow's grappler is off, because it would add the constants of a
chain to each other once and for all, which gives other results.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

# (op, length) of each chain. Runstep joins additions into expressions, but no Maximum.
CHAINS = (("AddV2", 1), ("AddV2", 10), ("AddV2", 100), ("AddV2", 1000), ("Maximum", 1000))
WIDTHS = (4, 16)
SIZE = 512  # of the square matrices
ROW_SECONDS = 1.0

Runner = Callable[[], object]
Rows = dict[str, float]


def chain_name(op: str, length: int) -> str:
    """Return the name of a chain's rows."""
    return f"chain of {length}" + ("" if op == "AddV2" else f" {op}")


def repeats_for(seconds: float) -> int:
    """Return how often to run a step of so many seconds: a burst of other work must not decide."""
    return max(30, int(ROW_SECONDS / seconds))


def runstep_times() -> Rows:
    """Return the median step time of each graph in µs, in the caller's thread and on a pool."""
    import protos as pb
    from bench.engines.warm_up import warm_up
    from bench.measure import median, seconds_of
    from runtime.api import SessionOptions, new_session
    from tests.conformance.case import Graph

    def one_thread_a_kernel() -> pb.ConfigProto:
        return pb.ConfigProto(intra_op_parallelism_threads=1)

    caller = pb.RunOptions(inter_op_thread_pool=-1)
    rows: Rows = {}
    for op, length in CHAINS:
        graph = Graph()
        value = graph.placeholder("float32", "x")
        for index in range(length):
            value = graph.add(op, value, np.float32([index, 2]), name=f"n{index}")[0]
        session = new_session(SessionOptions(config=one_thread_a_kernel()))
        session.create(graph.graph_def)
        feeds = {"x": np.float32([1, 2])}
        for where, options in (("caller", caller), ("pool", pb.RunOptions())):
            run = functools.partial(session.run, feeds, [value[0]], (), options)
            warm_up(run)
            times = seconds_of(run, repeats_for(min(seconds_of(run, 3))))
            rows[f"{chain_name(op, length)} / {where}"] = median(times) * 1e6
    for width in WIDTHS:
        graph = Graph()
        x = graph.placeholder("float32", "x")
        products = [graph.add("MatMul", x, x, name=f"m{i}")[0] for i in range(width)]
        negated = [graph.add("Neg", each, name=f"g{i}")[0] for i, each in enumerate(products)]
        scaled = [
            graph.add("Mul", each, np.float32(i + 2), name=f"s{i}")[0]
            for i, each in enumerate(negated)
        ]
        total = graph.add("AddN", scaled, name="total")[0]
        config = one_thread_a_kernel()
        config.graph_options.optimizer_options.opt_level = pb.OptimizerOptions.L0
        session = new_session(SessionOptions(config=config))
        session.create(graph.graph_def)
        feeds = {"x": np.ones((SIZE, SIZE), np.float32)}
        for where, options in (("caller", caller), ("pool", pb.RunOptions())):
            run = functools.partial(session.run, feeds, [total[0]], (), options)
            warm_up(run)
            times = seconds_of(run, repeats_for(min(seconds_of(run, 3))))
            rows[f"{width} MatMuls of {SIZE}² / {where}"] = median(times) * 1e6
    return rows


def tensorflow_times() -> Rows:
    """Return the same in TensorFlow without grappler; requires an environment that has it."""
    import tensorflow as tf

    from bench.measure import seconds_of

    v1 = tf.compat.v1
    config = v1.ConfigProto(intra_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    rows: Rows = {}

    def measure(name: str, fetch: object, feeds: dict[object, object]) -> None:
        with v1.Session(config=config) as session:
            for where, index in (("caller", -1), ("pool", 0)):
                options = v1.RunOptions(inter_op_thread_pool=index)
                run = functools.partial(session.run, fetch, feeds, options=options)
                seconds_of(run, 3)
                times = seconds_of(run, repeats_for(min(seconds_of(run, 3))))
                rows[f"{name} / {where}"] = float(np.median(times)) * 1e6

    for op, length in CHAINS:
        with tf.Graph().as_default():
            x = value = v1.placeholder(tf.float32, [2])
            for index in range(length):
                other = tf.constant([float(index), 2.0])
                value = getattr(tf.raw_ops, op)(x=value, y=other)
            measure(chain_name(op, length), value, {x: [1.0, 2.0]})
    for width in WIDTHS:
        with tf.Graph().as_default():
            x = v1.placeholder(tf.float32, [SIZE, SIZE])
            scaled = [(-tf.matmul(x, x)) * float(i + 2) for i in range(width)]
            feeds = {x: np.ones((SIZE, SIZE), np.float32)}
            measure(f"{width} MatMuls of {SIZE}²", tf.add_n(scaled), feeds)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow", help="an interpreter that has TensorFlow")
    parser.add_argument("--as-peer", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if options.as_peer:
        print(json.dumps(tensorflow_times()))
        return
    mine = runstep_times()
    theirs: Rows = {}
    if options.tensorflow:
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
        output = subprocess.run(
            [options.tensorflow, "-m", "bench.session_overhead", "--as-peer"],
            env=environment,
            cwd=pathlib.Path(__file__).parents[1],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        theirs = json.loads(output.splitlines()[-1])
    from bench.measure import write_json
    from bench.tables import overhead_table

    figures = {"runstep": mine, "tensorflow": theirs}
    print(overhead_table(figures))
    if options.json:
        write_json(options.json, figures)


if __name__ == "__main__":
    sys.exit(main())
