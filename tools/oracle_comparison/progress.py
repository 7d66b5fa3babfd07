"""The reports of a run so far, stored so that an interrupted run can be resumed."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib

from tools.oracle_comparison.comparison import Report, Request, Tally

ROOT = pathlib.Path(__file__).parents[2]
# Folders whose code the counts depend on.
CODE = ("runtime", "protos", "tests/conformance/cases", "tools/oracle_comparison")


class Progress:
    """A file with one line for each op; it is discarded if the code or the request has changed."""

    def __init__(self, path: pathlib.Path, request: Request) -> None:
        self._path = path
        self._key = {"code": _code_digest(), **dataclasses.asdict(request)}

    def reports(self) -> dict[str, Report]:
        """Return the reports of an interrupted run with the same code and request, by op."""
        if not self._path.exists():
            return {}
        # The last line may be incomplete, if the run ended while it was written.
        whole = self._path.read_text().splitlines(keepends=True)
        lines = [json.loads(line) for line in whole if line.endswith("\n")]
        if not lines or lines[0] != self._key:
            return {}
        return {
            line["op"]: Report(
                line["op"],
                {name: Tally(**counts) for name, counts in line["tallies"].items()},
                line["lines"],
            )
            for line in lines[1:]
        }

    def begin(self, reports: dict[str, Report]) -> None:
        self._path.parent.mkdir(exist_ok=True)
        self._path.write_text(json.dumps(self._key) + "\n")
        for report in reports.values():
            self.add(report)

    def add(self, report: Report) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(dataclasses.asdict(report)) + "\n")

    def finish(self) -> None:
        self._path.unlink(missing_ok=True)


def _code_digest() -> str:
    sha = hashlib.sha256()
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            sha.update(path.read_bytes())
    return sha.hexdigest()[:16]
