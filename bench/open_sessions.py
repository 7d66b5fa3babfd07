"""Measure the time and memory of opening sessions on a loaded model.

    python -m bench.open_sessions DIR [--sessions 100]

Every session runs one step; every tenth session also assigns to the model's first variable. The
memory is without holes in the heap, which a server returns.
"""

from __future__ import annotations

import argparse
import gc
import os
import pathlib
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from bench.measure import median, resident_bytes, write_json
from bench.tables import opening_table
from runtime.api import SavedModelBundle, SessionOptions, load_saved_model
from server.models.freed_memory import trim_heap


def feeds_of(bundle: SavedModelBundle) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return zeros for every input of the default signature, and the names of its outputs."""
    from runtime.framework.dtypes import DataType

    signature = bundle.signatures["serving_default"]
    feeds = {
        info.name: np.zeros(
            [max(1, dim.size) for dim in info.tensor_shape.dim], DataType(info.dtype).numpy
        )
        for info in signature.inputs.values()
    }
    return feeds, [info.name for info in signature.outputs.values()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory")
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    bundle = load_saved_model(SessionOptions(), None, options.directory, ["serve"])
    feeds, fetches = feeds_of(bundle)
    for _ in range(3):
        bundle.session.run(feeds, fetches)
    gc.collect()
    before = resident_bytes()
    sessions, times = [], []
    for index in range(options.sessions):
        started = time.perf_counter()
        session, is_shared = bundle.open_session(SessionOptions())
        times.append(time.perf_counter() - started)
        assert is_shared
        session.run(feeds, fetches)
        if index % 10 == 0:
            assign_to_first_variable(session)
        sessions.append(session)
    gc.collect()
    trim_heap()  # as a server does when it is idle, or its memory has grown much
    each = (resident_bytes() - before) / options.sessions
    figures = {"sessions": options.sessions, "open_ms": median(times) * 1e3, "mb_each": each / 1e6}
    print(opening_table(figures))
    if options.json:
        write_json(options.json, figures)


def assign_to_first_variable(session: object) -> None:
    """Write to one variable, so that the memory of its copy is counted."""
    from runtime.framework.resources.variable import Variable

    for _, _, resource in session.resources:  # type: ignore[attr-defined]
        if isinstance(resource, Variable) and resource.is_initialized:
            resource.update(lambda array: array.__iadd__(0))
            return


if __name__ == "__main__":
    main()
