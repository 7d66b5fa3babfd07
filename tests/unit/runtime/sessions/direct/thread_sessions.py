"""Sessions with pools of given sizes, whose steps return the name of their thread."""

from __future__ import annotations

import threading

import numpy as np

import protos as pb
from runtime.api import KernelDef, SessionOptions, new_session
from tests.conformance.case import Graph


def pools_of(*entries: tuple[int, str], **config: int) -> pb.ConfigProto:
    listed = [pb.ThreadPoolOptionProto(num_threads=n, global_name=name) for n, name in entries]
    return not_folding(pb.ConfigProto(session_inter_op_thread_pool=listed, **config))  # type: ignore[arg-type]


def not_folding(config: pb.ConfigProto) -> pb.ConfigProto:
    """Turn constant folding off: kernels of these tests must run in the step."""
    config.graph_options.optimizer_options.opt_level = pb.OptimizerOptions.L0
    return config


def current_thread_name(_: object) -> np.ndarray:
    return np.array(threading.current_thread().name.encode(), object)


def thread_session(config: pb.ConfigProto) -> tuple[object, pb.GraphDef]:
    """A session whose `StringUpper` returns the name of the thread that runs it."""
    graph = Graph()
    graph.add("StringUpper", np.array(b"", object), name="thread")
    kernel = KernelDef("StringUpper", current_thread_name)
    session = new_session(SessionOptions(config=config, kernels=[kernel]))
    session.create(graph.graph_def)
    return session, graph.graph_def


def run_thread(session: object, index: int) -> str:
    options = pb.RunOptions(inter_op_thread_pool=index)
    (name,) = session.run({}, ["thread"], (), options)  # type: ignore[attr-defined]
    return bytes(name[()]).decode()
