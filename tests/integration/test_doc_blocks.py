"""Every code block of the pages runs as printed, but the few whose page says why they do not.

The blocks of a page run in its order, in a folder of their own for the tutorial, else in the
repository. `tools/docs_site/blocks.py` has the rules. docs/front_end.md has a test of its own.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator

import pytest
import yaml

from server.access.keys_file import read_owners
from server.settings import Settings
from tests.integration.server_process import ROOT, SECONDS, ServerProcess, on_free_ports
from tools.docs_site.blocks import RUN, Block, blocks_of, counts, is_printed
from tools.docs_site.pages import GENERATED, PLACES

PAGES = [page for page in PLACES if not page.startswith(f"{GENERATED}/")]
# test_front_end_page.py, whose blocks are one program, test_ray_page.py and test_terminal_page.py.
ELSEWHERE = {"docs/front_end.md", "docs/ray.md", "docs/terminal.md"}
BLOCKS = {page: list(blocks_of(ROOT, ROOT / page)) for page in PAGES}
# The models that are not loaded yet when the port opens, of the examples.
EXAMPLES = ("digits", "half_plus_two", "counter")


class Page:
    """Runs the blocks of a page; variables of the shell stay from block to block."""

    def __init__(self, folder: pathlib.Path, state: pathlib.Path) -> None:
        self._folder, self._state = folder, state
        self._state.write_text("")
        self.server: ServerProcess | None = None
        programs = pathlib.Path(sys.executable).parent
        self._environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "REPOSITORY": str(ROOT),
            "PYTHONPATH": str(ROOT),
        }

    def serve(self, command: str) -> None:
        """Start the server of a block, on free ports, and wait until its models serve."""
        command = re.sub(r"--(rest_api_)?port=\d+", "", command)
        is_tensorflow = command.startswith("tensorflow_model_server")
        command = re.sub(r"(?=\b(runstep|tensorflow_model_server) )", "exec ", command, count=1)
        script = f"set -a; . {self._state}; {command}"
        self.end()
        process = ServerProcess.__new__(ServerProcess)
        ports = on_free_ports() | {each: self._environment[each] for each in self._environment}
        ports |= {"RUNSTEP_REST__PORT": "free", "RUNSTEP_GRPC__PORT": "free"}
        if is_tensorflow:  # whose default is no REST; the setting is what asks for a free port
            assert "model_config_file" in command
        process.follow(
            subprocess.Popen(
                ["bash", "-c", script], cwd=self._folder, env=ports, text=True,
                stderr=subprocess.PIPE,
            )
        )  # fmt: skip
        self.server = process
        end = time.monotonic() + SECONDS
        while process.client.get("/readyz").status_code == 503:
            assert time.monotonic() < end, "".join(process.log)

    def end(self) -> None:
        if self.server is not None:
            self.server.end()

    def run(self, block: Block) -> str:
        """Run a block; return what it prints."""
        text = block.text
        if self.server is not None:
            text = text.replace("localhost:8501", self.server.http_address.removeprefix("http://"))
            if "localhost:8500" in text:
                grpc = self.server.grpc_address.removeprefix("grpc://")
                text = text.replace("localhost:8500", grpc)
        if block.language == "python":
            command = [sys.executable, "-c", text]
        else:
            script = f"set -a; . {self._state}; set +a; {text}\nset | grep -E '^[A-Z_]+=' | "
            script += f"grep -vE '^(BASH|EUID|PPID|SHELLOPTS|UID|PIPE)' > {self._state}"
            command = ["bash", "-e", "-c", script]
        ended = subprocess.run(
            command, cwd=self._folder, env=self._environment, capture_output=True, text=True,
            timeout=SECONDS,
        )  # fmt: skip
        assert ended.returncode == 0, f"{block.page}:{block.line}\n{ended.stdout}{ended.stderr}"
        return ended.stdout


@pytest.fixture
def page_of(tmp_path: pathlib.Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    name: str = request.getfixturevalue("name")
    folder = tmp_path if "/tutorial/" in name else ROOT
    page = Page(folder, tmp_path / "state")
    try:
        if "/tutorial/" not in name and any("localhost:850" in b.text for b in BLOCKS[name]):
            page.serve(f"runstep serve --config={ROOT}/configs/server.yaml --host=127.0.0.1")
        yield page
    finally:
        page.end()


def has_runs(page: str) -> bool:
    return any(block.language in RUN and not block.reason for block in BLOCKS[page])


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
@pytest.mark.parametrize("name", [p for p in PAGES if has_runs(p) and p not in ELSEWHERE])
def test_the_blocks_of_a_page_print_what_it_says(name: str, page_of: Page) -> None:
    before, printed = None, ""
    for block in BLOCKS[name]:
        if block.serves:
            page_of.serve(block.text.strip())
        elif block.language in RUN and not block.reason:
            printed = page_of.run(block)
        elif before is not None and is_printed(before, block):
            where = f"{block.page}:{block.line}"
            assert is_as_printed(printed, block.text), f"{where}: got\n{printed}"
        before = block


def is_as_printed(printed: str, expected: str) -> bool:
    """Whether a program printed what the page says; spaces don't count, `…` is anything."""
    parts = ["".join(part.split()) for part in expected.split("…")]
    return re.fullmatch(".*".join(map(re.escape, parts)), "".join(printed.split())) is not None


@pytest.mark.parametrize(
    ("printed", "expected", "is_same"),
    [
        ('{"a":1}\n', '{"a": 1}', True),
        ('{"a":1}\n', '{"a": 2}', False),
        ("one two three", "one … three", True),
        ("one two", "two", False),
    ],
)
def test_what_is_printed_is_compared(printed: str, expected: str, is_same: bool) -> None:
    assert is_as_printed(printed, expected) is is_same


SHOWN = [b for blocks in BLOCKS.values() for b in blocks if b.language in ("yaml", "json", "toml")]


@pytest.mark.parametrize("block", SHOWN, ids=lambda block: f"{block.page}:{block.line}")
def test_settings_and_json_are_what_they_look_like(block: Block, tmp_path: pathlib.Path) -> None:
    if block.reason:
        assert yaml.safe_load(block.text)
    elif block.marker == "keys file":
        (tmp_path / "keys.yaml").write_text(block.text)
        owners = read_owners(tmp_path / "keys.yaml", ["low", "normal"], ["online", "background"])
        assert owners is not None
    elif block.language == "yaml":
        settings = yaml.safe_load(block.text)
        made = Settings(**{"models": (), **settings})
        assert set(settings) <= made.model_fields_set
    elif block.language == "toml":
        assert tomllib.loads(block.text)
    elif "…" not in block.text:
        for line in block.text.split("\n"):
            if line.startswith("{") and line.endswith("}"):
                assert isinstance(json.loads(line), dict)


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    blocks = [block for each in BLOCKS.values() for block in each]
    found = counts(blocks)
    assert found["run"] > 4 * found["not run"]
    assert all(len(block.reason) > 5 for block in blocks if block.reason)
    languages = {block.language for block in blocks}
    assert languages <= {"bash", "python", "json", "text", "yaml", "toml", ""}
