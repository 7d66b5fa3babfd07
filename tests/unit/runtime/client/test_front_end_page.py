"""The code blocks of docs/front_end.md run as the page describes."""

from __future__ import annotations

import pathlib
import re

from runtime.api import SessionOptions, load_saved_model

PAGE = pathlib.Path(__file__).parents[4] / "docs" / "front_end.md"


def test_the_blocks_of_the_page_run_in_order(tmp_path):
    text = PAGE.read_text()
    blocks = list(re.finditer(r"```python\n(.*?)```", text, re.DOTALL))
    names = {"folder": tmp_path}
    for block in blocks:
        before = "\n" * text.count("\n", 0, block.start(1))  # tracebacks show the page's lines
        exec(compile(before + block[1], str(PAGE), "exec"), names)
    assert len(blocks) == 14
    bundle = load_saved_model(SessionOptions(), None, str(tmp_path / "model"), {"serve"})
    assert list(bundle.signatures) == ["serving_default"]
