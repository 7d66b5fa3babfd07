"""Time single kernels on inputs of realistic size, in Runstep and in TensorFlow, in one thread.

    python -m bench.kernels [--tensorflow PYTHON] [--family F] [--match TEXT] [--slower-than 5]

Both run the same graphs without optimisation. The inputs are constants and the node is a target,
so that no time is spent on feeding or fetching. A figure is the shortest of several runs minus the
shortest empty step. PYTHON is an interpreter with TensorFlow.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Callable, Iterable

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import protos as pb
from bench.kernels.rows import FAMILIES, Row
from bench.kernels.rows_of_structure import FAMILIES as STRUCTURE
from bench.measure import quickest
from bench.tables import table
from runtime.api import OpError, SessionOptions, new_session
from tests.conformance.case import Graph

SECONDS = 0.3  # spent on each row
EMPTY = "empty step"

TENSORFLOW_PROGRAM = """
import json, pathlib, sys, time
sys.path.insert(0, sys.argv[1])
import tensorflow as tf
from bench.measure import quickest
v1 = tf.compat.v1
v1.disable_eager_execution()
config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
config.graph_options.rewrite_options.disable_meta_optimizer = True
config.graph_options.optimizer_options.opt_level = -1
times = {}
for path in sorted(pathlib.Path(sys.argv[2]).glob("*.pb")):
    graph = tf.Graph()
    with graph.as_default():
        try:
            tf.import_graph_def(v1.GraphDef.FromString(path.read_bytes()), name="")
            with v1.Session(config=config) as session:
                for name in path.with_suffix(".setup").read_text().split():
                    session.run(graph.get_operation_by_name(name))
                run = session.make_callable(graph.get_operation_by_name("result"))
                times[path.stem] = quickest(run, float(sys.argv[3]))
        except Exception as error:
            print(path.stem, str(error)[:300], file=sys.stderr)
print(json.dumps(times))
"""


def all_rows(family: str | None, match: str) -> list[Row]:
    """Return the empty step and the rows (of one family or all) whose name contains `match`."""
    graph = Graph()
    graph.add("NoOp", name="result")
    rows = [Row("", EMPTY, graph.graph_def)]
    for each in (*FAMILIES, *STRUCTURE):
        if family in (None, each.__name__):
            rows += (row for row in each() if match in row.name)
    return rows


def runstep_times(rows: Iterable[Row], seconds: float) -> list[float | None]:
    """Return the seconds of each row in Runstep; None for a row that fails."""
    config = pb.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=-1)
    config.graph_options.optimizer_options.opt_level = pb.OptimizerOptions.L0
    times: list[float | None] = []
    for row in rows:
        session = new_session(SessionOptions(config=config))
        session.create(row.graph)
        try:
            for name in row.setup:
                session.run({}, [], [name])
            run: Callable[[], object] = lambda s=session: s.run({}, [], ["result"])  # noqa: E731
            times.append(quickest(run, seconds))
        except OpError as error:
            print(f"{row.name}: {error.message}")
            times.append(None)
    return times


def tensorflow_times(rows: Iterable[Row], python: str, seconds: float) -> list[float | None]:
    """Return the seconds of each row in TensorFlow; None for a row that fails."""
    with tempfile.TemporaryDirectory() as folder:
        stems = []
        for number, row in enumerate(rows):
            stem = f"{number:04d} {row.name.replace('/', '|')}"
            path = pathlib.Path(folder, f"{stem}.pb")
            path.write_bytes(row.graph.SerializeToString())
            path.with_suffix(".setup").write_text(" ".join(row.setup))
            stems.append(stem)
        root = str(pathlib.Path(__file__).parents[2])
        output = subprocess.run(
            [python, "-c", TENSORFLOW_PROGRAM, root, folder, str(seconds)],
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
    times = json.loads(output.splitlines()[-1])
    return [times.get(stem) for stem in stems]


def shown(seconds: float | None, empty: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{max(seconds - (empty or 0), 1e-7) * 1e3:,.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow", help="an interpreter that has TensorFlow")
    parser.add_argument("--family", choices=[each.__name__ for each in (*FAMILIES, *STRUCTURE)])
    parser.add_argument("--match", default="", help="only kernels whose name contains it")
    parser.add_argument("--slower-than", type=float, default=0, help="only ratios above it")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for one kernel")
    options = parser.parse_args()
    rows = all_rows(options.family, options.match)
    mine = runstep_times(rows, options.seconds)
    theirs: list[float | None] = [None] * len(rows)
    if options.tensorflow:
        theirs = tensorflow_times(rows, options.tensorflow, options.seconds)
    lines = []
    for row, own, peer in zip(rows[1:], mine[1:], theirs[1:], strict=True):
        ratio = 0.0
        if own is not None and peer is not None:
            ratio = max(own - (mine[0] or 0), 1e-7) / max(peer - (theirs[0] or 0), 1e-6)
        if ratio >= options.slower_than:
            cells = shown(own, mine[0]), shown(peer, theirs[0]), f"{ratio:.2f}" if ratio else "–"
            lines.append([row.family, row.name, *cells])
    print(table(["family", "kernel", "Runstep ms", "TensorFlow ms", "ratio"], lines))
