"""Run the tests of targets with Runstep's gRPC client against a TensorFlow master.

    python tools/check/tensorflow_server.py [arguments of pytest]

Requires an environment with TensorFlow, this project's dependencies and pytest. The master is a
`tf.distribute.Server` of one task in a separate process.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
TESTS = "tests/integration/targets"
# The sampled cases compare with answers recorded from TensorFlow, so they would test nothing here.
LEFT_OUT = f"{TESTS}/test_sampled_cases.py"
MASTER = """
import sys
import tensorflow as tf
server = tf.distribute.Server.create_local_server()
print(server.target, flush=True)
sys.stdin.read()
"""


def main(arguments: list[str]) -> int:
    with subprocess.Popen(
        [sys.executable, "-c", MASTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as master:
        assert master.stdout is not None
        target = master.stdout.readline().strip()
        if not target.startswith("grpc://"):
            print("TensorFlow's server did not start", file=sys.stderr)
            return 1
        print(f"The master is {target}", flush=True)
        flags = [f"--rootdir={ROOT}", str(ROOT / TESTS), f"--ignore={ROOT / LEFT_OUT}"]
        try:
            return int(pytest.main([*flags, f"--master={target}", *arguments]))
        finally:
            master.kill()


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))
