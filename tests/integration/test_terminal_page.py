"""The bash blocks of docs/terminal.md run as pasted, and the page names what the parser has."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from server.commands.completion import commands_of
from server.main import _parser
from tests.integration.server_process import ROOT, SECONDS, ServerProcess

PAGE = (ROOT / "docs" / "terminal.md").read_text()
BLOCKS = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With `runstep` of this repository on the path, and an empty home."""
    program = tmp_path / "bin" / "runstep"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m server.main "$@"\n')
    program.chmod(0o755)
    return {
        **os.environ,
        "HOME": str(tmp_path),
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the repository's examples, where files may be written."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "examples").symlink_to(ROOT / "examples")
    return tmp_path / "work"


def paste(block: str, environment: dict[str, str], folder: Path) -> str:
    """Run a block, and return its standard output and error."""
    result = subprocess.run(
        ["bash", "-e", "-c", block], cwd=folder, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout
    return result.stdout


def test_blocks_without_a_server(environment: dict[str, str], folder: Path) -> None:
    blocks = [block for block in BLOCKS if "localhost" not in block]
    assert len(blocks) == 4
    trace = folder.parent / "trace.json"
    blocks = [block.replace("/tmp/trace.json", str(trace)) for block in blocks]
    words, file, bench, completion = (paste(each, environment, folder) for each in blocks)
    assert [path.name for path in folder.iterdir()] == ["examples"]  # so the clone stays clean
    assert re.search(r"\d+ % of [\d.]+ .s (was|passed) ", words) and '"data":[[2.5],[3.0]]' in words
    assert "node and first output" in file and trace.stat().st_size > 100
    assert re.search(r"^\d+ requests in 2\.\d\d s: .* 0 failed$", bench, re.MULTILINE)
    script = Path(environment["HOME"], ".local/share/bash-completion/completions/runstep")
    assert completion == "" and "complete -F _runstep runstep" in script.read_text()


def test_blocks_with_a_server(environment: dict[str, str], folder: Path) -> None:
    (block,) = [block for block in BLOCKS if "localhost" in block]
    server = ServerProcess("--config=configs/server.yaml", "--host=127.0.0.1")
    try:
        server.wait_for("Loaded version 1 of model half_plus_two ")
        block = block.replace("http://localhost:8501", server.http_address)
        block = block.replace("grpc://localhost:8500", server.grpc_address)
        out = paste(block.replace("--seconds 2", "--seconds 0.2"), environment, folder)
    finally:
        server.end()
    assert len(re.findall(r"^\d+ requests in .* 0 failed$", out, re.MULTILINE)) == 3


def test_the_page_names_the_flags_of_bench() -> None:
    (bench,) = [command for command in commands_of(_parser()) if command.name == "bench"]
    names = {name for flag in bench.options for name in flag.names if name.startswith("--")}
    assert {name for name in names if f"`{name}" not in PAGE} == {"--help", "--tags"}
    table = PAGE.partition("| flag |")[2].partition("\n\n")[0]
    assert set(re.findall(r"--\w+", table)) <= names
