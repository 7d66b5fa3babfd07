"""Write docs/yardstick.md from results of TensorFlow's own tests run against the gRPC port.

    python tools/write_yardstick_page.py --tensorflow REF.json --null NULL.json OURS.json…

Each file is a JSON list of {"file", "passed": [ids], "bad": [[id, last line of the error], …]}.
REF is TensorFlow's own server, NULL one that refuses everything. Of several results of one test
the newest counts: later arguments win over earlier ones, for the tests that they reached.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
from typing import Any

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "yardstick.md"
HEAD = """# TensorFlow's own tests as the yardstick

TensorFlow's Python tests build graphs with TensorFlow's front end; here every `tf.Session` in them
runs its steps on Runstep's gRPC port. What counts is R: the tests that pass on TensorFlow's own
gRPC server and fail on a server that refuses everything. A test that did not run counts as failed.
The tests themselves are not part of this repository.

One run over the whole list, with a server of its own for each directory and 150 s for each file;
files in which a test of R failed were run again, each on a new server, when causes had been mended,
and of each test the newest result counts. (A server keeps the variables of the files before; on
TensorFlow's own, too, tests fail for that.) Ids are compared without the addresses of functions
that some contain: those differ from run to run. *Did not run*: a file ran out of its time limit
before it came to the test.

"""
REASONS_SHOWN = 25


def load(paths: list[str]) -> dict[str, dict[str, Any]]:
    """{test file: its newest row}."""
    rows: dict[str, dict[str, Any]] = {}
    for path in paths:
        for row in json.loads(pathlib.Path(path).read_text()):
            rows[row["file"]] = row
    return rows


def same(test: str) -> str:
    """A test's id without the addresses that some have in their names."""
    return re.sub(r"0x[0-9a-f]+", "", test)


def passed_in(row: dict[str, Any]) -> set[str]:
    """The tests of a file that passed."""
    return {same(test) for test in row["passed"]}


def newest(paths: list[str]) -> dict[str, dict[str, str]]:
    """{test file: {test: "" when it passed, else the last line of its error}}."""
    results: dict[str, dict[str, str]] = {}
    for path in paths:
        for row in json.loads(pathlib.Path(path).read_text()):
            tests = results.setdefault(row["file"], {})
            tests.update({same(each[0]): each[1] for each in row["bad"]})
            tests.update(dict.fromkeys(map(same, row["passed"]), ""))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow", required=True)
    parser.add_argument("--null", required=True)
    parser.add_argument("ours", nargs="+")
    options = parser.parse_args()
    reference, null, ours = load([options.tensorflow]), load([options.null]), newest(options.ours)
    table: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0, 0, 0])
    reasons: collections.Counter[str] = collections.Counter()
    for path in sorted(reference.keys() & null.keys()):
        counted = passed_in(reference[path]) - passed_in(null[path])
        mine = ours.get(path, {})
        got = {test for test in counted if mine.get(test) == ""}
        row = table[os.path.dirname(path).removeprefix("tensorflow/python/")]
        row[0] += len(got)
        row[1] += len(counted)
        row[2] += path in ours
        row[3] += 1
        for test in counted - got:
            reasons[shorten(mine.get(test) or "did not run")] += 1
    lines = ["| directory | passed | of R | % | files run |", "| --- | --- | --- | --- | --- |"]
    for name, (got, want, run, files) in sorted(table.items()):
        if want:
            lines.append(f"| {name} | {got} | {want} | {100 * got / want:.1f} | {run} of {files} |")
    got, want, run, files = (sum(row[k] for row in table.values()) for k in range(4))
    share = 100 * got / max(1, want)
    lines.append(f"| **all** | **{got}** | **{want}** | **{share:.1f}** | {run} of {files} |")
    lines += ["", "## What the others fail with", "", "| tests | last line of the error |"]
    lines.append("| --- | --- |")
    lines += [f"| {count} | `{text}` |" for text, count in reasons.most_common(REASONS_SHOWN)]
    PAGE.write_text(HEAD + "\n".join(lines) + "\n")
    print(lines[-REASONS_SHOWN - 5 :][0])
    print(f"{got} of {want}: {share:.1f} %")


def shorten(text: str) -> str:
    """A reason without what differs from run to run, fit for a table cell."""
    text = re.sub(r"(/[\w.+-]+){2,}", "…", text.strip())
    text = re.sub(r"0x[0-9a-f]+|\d{4,}", "#", text)
    return text.replace("|", "/").replace("`", "'")[:110]


if __name__ == "__main__":
    main()
