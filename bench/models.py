"""Measure the step time of SavedModels in Runstep and in TensorFlow.

    python -m bench.models DIR… [--tensorflow PYTHON] [--batch 1] [--intra-op 1]

Each step runs the default signature on zeros in the caller's thread; a kernel may use `--intra-op`
threads. A figure is the median.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import protos as pb

REPEATS = 20
IN_CALLER = pb.RunOptions(inter_op_thread_pool=-1)

TENSORFLOW_PROGRAM = """
import json, os, sys, time
import numpy as np
import tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[2]))
tf.config.threading.set_inter_op_parallelism_threads(1)
rows = {}
for path in sys.argv[3:]:
    loaded = tf.saved_model.load(path)
    f = loaded.signatures["serving_default"]
    feeds = {k: tf.zeros([int(sys.argv[1]) if d is None else d for d in s.shape], s.dtype)
             for k, s in f.structured_input_signature[1].items()}
    times = []
    for _ in range(23):
        t = time.perf_counter(); [v.numpy() for v in f(**feeds).values()]
        times.append(time.perf_counter() - t)
    rows[path] = float(np.median(times[3:]))
print(json.dumps(rows))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directories", nargs="+")
    parser.add_argument("--tensorflow", help="an interpreter that has TensorFlow")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--intra-op", type=int, default=1, help="threads for one kernel")
    options = parser.parse_args()
    from bench.measure import median, seconds_of, table
    from bench.open_sessions import feeds_of
    from runtime.api import SessionOptions, load_saved_model
    from runtime.foundation.kept_memory import keep_freed_memory

    keep_freed_memory()  # as the server does

    theirs: dict[str, float] = {}
    if options.tensorflow:
        output = subprocess.run(
            [
                *(options.tensorflow, "-c", TENSORFLOW_PROGRAM),
                *(str(options.batch), str(options.intra_op), *options.directories),
            ],
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        theirs = json.loads(output.splitlines()[-1])
    rows = []
    for path in options.directories:
        config = pb.ConfigProto(intra_op_parallelism_threads=options.intra_op)
        bundle = load_saved_model(SessionOptions(config=config), None, path, ["serve"])
        feeds, fetches = feeds_of(bundle)
        feeds = {name: value.repeat(options.batch, 0) for name, value in feeds.items()}
        times = seconds_of(
            lambda b=bundle, f=feeds, o=fetches: b.session.run(f, o, (), IN_CALLER), REPEATS
        )
        peer = theirs.get(path)
        shown = [f"{peer * 1e3:.2f}", f"{median(times) / peer:.2f}"] if peer else ["–", "–"]
        rows.append([path.rstrip("/").rpartition("/")[2], f"{median(times) * 1e3:.2f}", *shown])
    print(table(["model", "Runstep ms", "TensorFlow ms", "ratio"], rows))


if __name__ == "__main__":
    main()
