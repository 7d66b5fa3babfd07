"""Run the benchmarks that need nothing but this repository: `python -m bench`, or `make bench`.

Each benchmark is a module that can be run alone, with more options: session_overhead, kernels,
open_sessions, start, priority, models, targets, soak.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parent.parent
RUNS: tuple[tuple[str, ...], ...] = (
    ("bench.session_overhead",),
    ("bench.kernels", "--seconds", "0.1"),
    ("bench.open_sessions", str(ROOT / "examples/models/digits/1")),
    ("bench.start",),
    ("bench.priority", "--seconds", "10"),
    ("bench.targets",),
)


def main() -> int:
    for module, *arguments in RUNS:
        print(f"\n{module} {' '.join(arguments)}", flush=True)
        code = subprocess.run([sys.executable, "-m", module, *arguments], cwd=ROOT).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
