"""Wall clocks are shown, never measured with: an administrator may set them at any moment.

The one exception is an instant that another process has written to a file.
"""

from __future__ import annotations

import ast
import pathlib

ROOT = pathlib.Path(__file__).parents[2]

# Where the wall clock is read, and what shows it.
SHOWN = {
    "runtime/executors/step_stats.py": "the instant at which a trace begins",
    "runtime/framework/data/snapshot_runs.py": "the time in the metadata of a run",
    "runtime/framework/io/snapshot_files.py": "the time in the metadata of a snapshot",
    "runtime/kernels/control/clock.py": "the Timestamp op",
    "runtime/kernels/data/dataset_snapshots.py": "the age of a snapshot, from its metadata",
    "runtime/kernels/io/summary_writers.py": "the times of events",
    "server/access/access.py": "instants in tokens",
    "server/console/live_figures.py": "the time of a message",
    "server/inference_protocol/statistics.py": "the instant of the last inference",
    "server/log.py": "the times of log lines",
    "server/models/request_log.py": "the time in the names of files",
    "server/sessions/clock.py": "the times in responses",
}
WALL = {
    "time": {"time", "time_ns", "localtime", "gmtime", "ctime"},
    "datetime": {"now", "utcnow", "today", "fromtimestamp"},
}


def wall_clock_uses(source: str) -> list[str]:
    """The names by which a module reads the wall clock."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
            if node.attr in WALL.get(owner, ()):
                found.append(f"{owner}.{node.attr}")
        elif isinstance(node, ast.ImportFrom) and node.module in WALL:
            found += [name.name for name in node.names if name.name in WALL[node.module]]
    return found


def test_only_what_is_shown_reads_the_wall_clock() -> None:
    modules = [path for part in ("runtime", "server") for path in (ROOT / part).rglob("*.py")]
    assert len(modules) > 400
    readers = {str(p.relative_to(ROOT)) for p in modules if wall_clock_uses(p.read_text())}
    assert readers == set(SHOWN)


def test_each_way_of_reading_is_found() -> None:
    assert wall_clock_uses("import time\nx = time.time()") == ["time.time"]
    assert wall_clock_uses("from time import time_ns") == ["time_ns"]
    assert wall_clock_uses("import datetime\ndatetime.datetime.now()") == ["datetime.now"]
    assert wall_clock_uses("import time\nx = time.monotonic() + step.time") == []
