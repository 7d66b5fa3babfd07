"""Drawings made from the code, as SVG: the floors of the imports, and the way of one request.

They have no fonts, scripts or styles of elsewhere, and follow the reader's light or dark theme.
"""

from __future__ import annotations

import ast
import html
import pathlib
from collections.abc import Iterator, Mapping, Sequence

_STYLE = (
    "<style>text{font:13px system-ui,sans-serif;fill:#1f2328}.small{font-size:11px;fill:#57606a}"
    "rect{fill:#f6f8fa;stroke:#8c959f}.marked rect{fill:#ddf4ff;stroke:#0969da}"
    "path{stroke:#57606a;fill:none}@media(prefers-color-scheme:dark){text{fill:#e6edf3}"
    ".small{fill:#9da7b3}rect{fill:#161b22;stroke:#6e7681}"
    ".marked rect{fill:#0c2d6b;stroke:#58a6ff}path{stroke:#9da7b3}}</style>"
)
_WIDTH, _ROW, _MARGIN = 880, 30, 12


def floors(root: pathlib.Path) -> str:
    """Draw the floors of `tests/unit/test_layers.py`, the highest on top; imports go downward.

    Each package has its number of lines of code.
    """
    rows = list(reversed(_floors(root)))
    parts = []
    for number, names in enumerate(rows):
        y = _MARGIN + number * (_ROW + 4)
        width = (_WIDTH - 2 * _MARGIN - 8 * (len(names) - 1)) / len(names)
        for column, name in enumerate(names):
            x = _MARGIN + column * (width + 8)
            label = name if len(names) < 4 else name.partition(".")[2] or name
            parts.append(
                f'<g class="{"marked" if name.startswith("runtime") else ""}">'
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_ROW}" rx="4"/>'
                f'<text x="{x + 8:.1f}" y="{y + 19}">{html.escape(label)}</text>'
                f'<text class="small" x="{x + width - 8:.1f}" y="{y + 19}" text-anchor="end">'
                f"{_lines(root, name):,}</text></g>"
            )
    height = 2 * _MARGIN + len(rows) * (_ROW + 4)
    return _svg(height, "Floors of packages; each imports from those below it alone", parts)


def _floors(root: pathlib.Path) -> Sequence[Sequence[str]]:
    tree = ast.parse((root / "tests" / "unit" / "test_layers.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "FLOORS":
            assert node.value is not None
            found: Sequence[Sequence[str]] = ast.literal_eval(node.value)
            return found
    raise LookupError("tests/unit/test_layers.py has no FLOORS")


def _lines(root: pathlib.Path, name: str) -> int:
    path = root / name.replace(".", "/")
    files = path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")]
    return sum(
        len(file.read_text().splitlines()) for file in files if not file.name.endswith("_pb2.py")
    )


def way(title: str, calls: Sequence[tuple[str, str]], deciding: frozenset[str]) -> str:
    """Draw the functions that a request enters, in order, in a column for each room.

    Args:
        title: What is drawn.
        calls: (file, function) of each function that is entered in another file than the last.
        deciding: The files that decide something; they are marked.
    """
    rooms = list(dict.fromkeys(_room(file) for file, _ in calls))
    width = (_WIDTH - 2 * _MARGIN) / len(rooms)
    parts = [
        f'<text class="small" x="{_MARGIN + width * (column + 0.5):.1f}" y="20" '
        f'text-anchor="middle">{html.escape(room)}</text>'
        for column, room in enumerate(rooms)
    ]
    before: tuple[float, float] | None = None
    for number, (file, function) in enumerate(calls):
        column = rooms.index(_room(file))
        x, y = _MARGIN + width * column, 34 + number * 26
        if before is not None:
            parts.append(f'<path d="M{before[0]:.1f} {before[1]:.1f} L{x + width / 2:.1f} {y}"/>')
        name = f"{file.rpartition('/')[2].removesuffix('.py')}.{function}"
        shown = name if len(name) * 5.6 < width - 8 else function
        parts.append(
            f'<g class="{"marked" if file in deciding else ""}"><title>{html.escape(file)}</title>'
            f'<rect x="{x + 2:.1f}" y="{y}" width="{width - 4:.1f}" height="20" rx="4"/>'
            f'<text class="small" x="{x + width / 2:.1f}" y="{y + 14}" text-anchor="middle">'
            f"{html.escape(shown[: int(width / 5.6)])}</text></g>"
        )
        before = (x + width / 2, y + 20)
    return _svg(48 + len(calls) * 26, title, parts)


def _room(file: str) -> str:
    parts = file.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def lanes(title: str, spans: Mapping[str, Sequence[tuple[str, float, float]]]) -> str:
    """Draw spans (name, start, seconds) in a lane for each thread."""
    last = max((start + took for each in spans.values() for _, start, took in each), default=1.0)
    parts = []
    for row, (lane, each) in enumerate(spans.items()):
        y = _MARGIN + row * 52
        parts.append(f'<text class="small" x="{_MARGIN}" y="{y + 10}">{html.escape(lane)}</text>')
        for name, start, took in each:
            x = _MARGIN + (_WIDTH - 2 * _MARGIN) * start / last
            width = max(1.0, (_WIDTH - 2 * _MARGIN) * took / last)
            label = html.escape(name[: int(width / 6)]) if width > 24 else ""
            parts.append(
                f'<g class="marked"><title>{html.escape(name)}: {took * 1e6:.0f} µs</title>'
                f'<rect x="{x:.1f}" y="{y + 16}" width="{width:.1f}" height="22" rx="2"/>'
                f'<text class="small" x="{x + 4:.1f}" y="{y + 31}">{label}</text></g>'
            )
    height = 2 * _MARGIN + 52 * len(spans) + 12
    parts.append(
        f'<text class="small" x="{_WIDTH - _MARGIN}" y="{height - 6}" text-anchor="end">'
        f"{last * 1e6:.0f} µs</text>"
    )
    return _svg(height, title, parts)


def _svg(height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" '
        f'aria-label="{html.escape(title)}"><title>{html.escape(title)}</title>{_STYLE}'
        f"{''.join(parts)}</svg>\n"
    )


def moves(calls: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the calls that enter another file than the one before."""
    before = ""
    for file, function in calls:
        if file != before:
            yield file, function
        before = file
