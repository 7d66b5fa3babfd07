"""The bash blocks of the README and of pages about protocols, as pasted, against a real server."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.integration.server_process import ROOT, SECONDS, ServerProcess

_PAIR = re.compile(r"```bash\n([^`]*)```\n```json\n([^`]*)```")  # commands and what they answer

_PAGES = ("README.md", "docs/inference_protocol.md")


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    """What `make serve` starts, once its models are loaded."""
    process = ServerProcess("--config=configs/server.yaml", "--host=127.0.0.1")
    try:
        for model in ("digits", "half_plus_two", "counter"):
            process.wait_for(f"Loaded version 1 of model {model} ")
        while process.client.get("/readyz").status_code == 503:
            pass
        yield process
    finally:
        process.end()


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_readme_lines_answer_as_printed(server: ServerProcess) -> None:
    text = "\n".join((ROOT / page).read_text() for page in _PAGES)
    pairs: list[tuple[str, str]] = _PAIR.findall(text)
    assert len(pairs) >= 7
    mark = "=== next block ==="
    script = f"\necho; echo '{mark}'\n".join(commands for commands, _ in pairs)
    script = script.replace("localhost:8501", server.http_address.removeprefix("http://"))
    result = subprocess.run(
        ["bash", "-e", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS
    )
    assert result.returncode == 0, result.stderr
    answers = [_lines(part) for part in result.stdout.split(mark)]
    assert answers == [_lines(printed) for _, printed in pairs]


def _lines(text: str) -> list[str]:
    """The lines of what a block prints; an answer of curl ends without a newline of its own."""
    return text.strip().splitlines()
