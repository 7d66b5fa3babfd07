"""Measure the installed size of Runstep: its files and those of all distributions it requires.

    python -m bench.installed_size [--extra fast]

Counts what pip recorded of each distribution in this environment, compiled modules included, and
the folders of the project itself. MB are 10⁶ bytes.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import pathlib
import re
from collections.abc import Callable, Iterable

from packaging.requirements import Requirement

from bench.measure import write_json
from bench.tables import table

ROOT = pathlib.Path(__file__).parent.parent
PROJECT, PACKAGES = "runstep", ("runtime", "server", "protos")
Requires = Callable[[str], Iterable[str] | None]


def required(project: str, extras: tuple[str, ...], requires: Requires) -> set[str]:
    """Return the distributions that a project with extras requires, directly or not.

    `requires` returns a distribution's requirements as its metadata has them.
    """
    found: set[str] = set()
    waiting = [(project, extras)]
    while waiting:
        name, chosen = waiting.pop()
        for line in requires(name) or ():
            requirement = Requirement(line)
            marker = requirement.marker
            if marker and not any(marker.evaluate({"extra": each}) for each in ("", *chosen)):
                continue
            other = re.sub(r"[-_.]+", "-", requirement.name).lower()
            if other not in found:
                found.add(other)
                waiting.append((other, tuple(requirement.extras)))
    return found


def distribution_bytes(name: str) -> int:
    """Return the size of a distribution's files."""
    files = importlib.metadata.distribution(name).files or []
    paths = [pathlib.Path(str(file.locate())) for file in files]
    return sum(path.stat().st_size for path in paths if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extra", nargs="*", default=["fast"])
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    names = required(PROJECT, tuple(options.extra), importlib.metadata.requires)
    sizes = {name: distribution_bytes(name) / 1e6 for name in names}
    own = [file for package in PACKAGES for file in (ROOT / package).rglob("*") if file.is_file()]
    sizes[PROJECT] = sum(file.stat().st_size for file in own) / 1e6
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:8]
    rows = [["all", f"{sum(sizes.values()):.0f}"], *([name, f"{mb:.1f}"] for name, mb in largest)]
    print(table(["installed", "MB"], rows))
    if options.json:
        write_json(options.json, {"installed_mb": sum(sizes.values()), "largest": dict(largest)})


if __name__ == "__main__":
    main()
