"""The program of docs/ray.md runs as printed, and the page names the options that there are."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

from runtime.session_host import session_host
from runtime.sessions.ray_cluster import hosts, ray_target
from tests.integration.test_doc_blocks import is_as_printed
from tests.ray_cluster import RayCluster

ROOT = pathlib.Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "ray.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$(?:\n+^```text\n(.*?)^```$)?", PAGE, re.M | re.S)


def test_the_blocks_of_the_page_print_what_it_says(cluster: RayCluster) -> None:
    assert len(BLOCKS) >= 2
    program = "import tests.ray_cluster\n"
    for code, _ in BLOCKS:
        program += f"{code}\nprint('--- end')\n"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=100,
        env={**os.environ, "RAY_ADDRESS": cluster.address, "PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split("--- end\n")
    for (_, expected), text in zip(BLOCKS, printed, strict=False):
        assert is_as_printed(text, expected), text


def test_the_page_has_the_options_and_the_times() -> None:
    for option in ray_target._OPTIONS.split(", "):
        assert f"`{option}`" in PAGE, option
    assert f"{hosts.HOST_IDLE_SECONDS:g} s" in PAGE
    assert f"{session_host.CLIENT_SECONDS:g} s" in PAGE
    assert f"{hosts.START_SECONDS:g} s" in PAGE
