"""The code blocks of the pages: what each is, and whether a test runs it.

A block of bash or Python runs in the order of its page, unless the line before it is
`<!-- not run: REASON -->`. `<!-- serves -->` before a bash block says that its last line starts a
server, which runs until the end of the page. A block of text or JSON behind one that ran is what
that printed; `…` stands for anything. A block of YAML is settings, unless `<!-- keys file -->` says
that it is a file of keys.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
from collections.abc import Iterator

RUN = ("bash", "python")
PRINTED = ("json", "text")
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARKER = re.compile(r"<!-- (not run: [^>]+?|serves|keys file) -->\n$")


@dataclasses.dataclass(frozen=True)
class Block:
    """A code block: its language, text, first line in the page, and marker."""

    page: str
    language: str
    text: str
    line: int
    marker: str

    @property
    def reason(self) -> str:
        """Why it is not run; empty if it is."""
        return self.marker.removeprefix("not run: ") if self.marker.startswith("not run") else ""

    @property
    def serves(self) -> bool:
        return self.marker == "serves"


def blocks_of(root: pathlib.Path, page: pathlib.Path) -> Iterator[Block]:
    """Yield the blocks of a page, in order; a fence within a list counts too, if not indented."""
    text = page.read_text()
    for match in _FENCE.finditer(text):
        marker = _MARKER.search(text, 0, match.start())
        yield Block(
            str(page.relative_to(root)),
            match[1],
            match[2],
            text.count("\n", 0, match.start(2)) + 1,
            marker[1] if marker else "",
        )


def counts(blocks: list[Block]) -> dict[str, int]:
    """Return how many blocks run, are compared, are read, and are not run."""
    found = {"run": 0, "compared": 0, "read": 0, "not run": 0}
    before: Block | None = None
    for block in blocks:
        if block.reason:
            found["not run"] += 1
        elif block.language in RUN:
            found["run"] += 1
        elif before is not None and before.page == block.page and is_printed(before, block):
            found["compared"] += 1
        else:
            found["read"] += 1
        before = block
    return found


def is_printed(before: Block, block: Block) -> bool:
    """Return whether `block` is what `before` prints."""
    return block.language in PRINTED and before.language in RUN and not before.reason
