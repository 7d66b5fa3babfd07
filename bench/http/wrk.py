"""wrk, a load generator for HTTP in C: the same request from one thread over several connections.

Source: https://github.com/wg/wrk (SCRIPTING)
"""

from __future__ import annotations

import json
import math
import pathlib
import resource
import shutil
import subprocess
import time

from bench.fronts.requests import HttpRequest

SCRIPT = """
wrk.method = "POST"
{headers}
local file = io.open({body}, "rb")
wrk.body = file:read("*a")
file:close()
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '\\n{{"requests": %d, "micros": %d, "p50": %d, "p99": %d, "errors": %d}}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    e.connect + e.read + e.write + e.status + e.timeout))
end
"""


def is_installed() -> bool:
    """Return whether there is wrk."""
    return shutil.which("wrk") is not None


def script(request: HttpRequest, body: pathlib.Path) -> str:
    """Return the script that sends a request whose body is in a file."""
    headers = "\n".join(
        f"wrk.headers[{json.dumps(name)}] = {json.dumps(value)}"
        for name, value in request.headers.items()
    )
    return SCRIPT.format(headers=headers, body=json.dumps(str(body)))


def figures_of(printed: str) -> dict[str, float]:
    """Return the figures of a run; raise RuntimeError if a request failed."""
    found = json.loads(printed.strip().splitlines()[-1])
    if found["errors"]:
        raise RuntimeError(f"{found['errors']} requests failed:\n{printed}")
    return {
        "per_second": found["requests"] / found["micros"] * 1e6,
        "p50_ms": found["p50"] / 1e3,
        "p99_ms": found["p99"] / 1e3,
    }


def run(
    address: str, request: HttpRequest, connections: int, seconds: float, folder: pathlib.Path
) -> dict[str, float]:
    """Return the figures of one turn, of whole seconds; `client` is the part of a core it took."""
    body, lua = folder / "wrk_body", folder / "wrk.lua"
    body.write_bytes(request.body)
    lua.write_text(script(request, body))
    command = ["wrk", "-t1", f"-c{connections}", f"-d{math.ceil(seconds)}s", "--timeout", "60s"]
    begun, before = time.perf_counter(), computed()
    done = subprocess.run(
        [*command, "-s", str(lua), address + request.path],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    share = (computed() - before) / (time.perf_counter() - begun)
    return {**figures_of(done.stdout), "client": share}


def computed() -> float:
    """Return the processor seconds of the processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
