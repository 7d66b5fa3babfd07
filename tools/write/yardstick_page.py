"""Write docs/yardstick.md from results of TensorFlow's own tests run against the gRPC port.

    python tools/write/yardstick_page.py --tensorflow REF.json --null NULL.json OURS.json…
    … --section "Other files"        writes only that section, from results of other files

Each file is a JSON list of {"file", "passed": [ids], "bad": [[id, last line of the error], …]}.
REF has the results of TensorFlow's own server, NULL those of a server that refuses everything. If
several of OURS have a result of one test, the last of them counts.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
from typing import Any

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "yardstick.md"
HEAD = """# TensorFlow's own tests as the yardstick

TensorFlow's Python tests build graphs with TensorFlow's front end; here every `tf.Session` in them
runs its steps on Runstep's gRPC port. R is the set of tests that count: those that pass on
TensorFlow's own gRPC server and fail on a server that refuses everything. A test that did not run
counts as failed. The tests are not part of this repository.

The whole list was run once, on one version (commit 71c7d0c2), on 23 and 24 November 2026, with a
new server for each directory and 700 s for each file; of each file, the tests of R were run, by
name. (A server keeps the variables of earlier files, which makes some tests fail, on TensorFlow's
own server too.) Ids are compared without the addresses of functions that some contain, which vary
from run to run. *Did not run*: the time limit of the file was reached before the test.

"""
REASONS_SHOWN = 25
REASONS = "Errors of the failed tests"
# Title → text of a section about files that are not on the list, each written from its own results:
# how the tests were run, and why the remaining tests fail.
SECTIONS = {
    "Other files": """Test files outside `kernel_tests` that are not on the list; they were run to
find the causes of failures. TensorFlow's server had 120 to 150 s for each file, on a machine with
other work; only the tests that it reached count. Runstep had up to 700 s, and files in which a test
of R failed were run again after fixes: the newest result of each test counts, so that the results
are of several versions. The table contains only files that ran here. Not run and not counted: the
files of `data/kernel_tests` from `map_test` on, `ops/parallel_for`, `ops/structured`, most of
`ops/numpy_ops`, `grappler/auto_mixed_precision_test`.

Causes of the remaining failures: ops made for TensorFlow's own tests (`KernelLabel`, `Old`,
`GraphDefVersion`, `ResourceCreateOp`, `TestAttr` and the like), `PyFunc` and `XlaAll…` have no
kernel here; an unknown device is not refused inside a function that is called instead of inlined;
symbolic checkpoints of windows work, which TensorFlow refuses. For `training/input_test` the result
of TensorFlow's server without an earlier file counts: 20 tests then find a variable of another type
that an earlier test left under the same name, and fail there as they do here.
""",
    "Other files under kernel_tests": """Files under `kernel_tests` that are not on the list,
run the same way; 137 of 173 are counted, because only these ran on all three servers. TensorFlow's
server had 150 to 200 s a file for `array_ops`, `distributions`, `linalg`, `math_ops`, `nn_ops`
and `signal`, on a machine with other work: it reached 55 tests of `array_ops_test`, and a part of
other long files. Nor are tests counted that the server that refuses everything did not reach.
Failed tests were run again on Runstep, so that the results are of several versions. Not counted: 13
files of `nn_ops` (pooling and recurrent cells among them) and 4 of `math_ops`, which did not run on
all three servers in the time, and 19 others (`py_func`, custom ops, protocol buffers, collectives
and more).

Causes of the remaining failures: denormal numbers are kept, TensorFlow flushes them to zero; an op
made for tests has no kernel here; `InplaceAdd` does not change its input; a dense hash table that
was saved and restored (the cause was not found); products of large sparse matrices did not end in
200 s (in TensorFlow: 147 s).
Another known difference: a kernel's attributes are checked here when it runs, in TensorFlow when it
is created, so that here an input that was not fed is reported first.
""",
}


def load(paths: list[str]) -> dict[str, dict[str, Any]]:
    """Return {test file: its last row}."""
    rows: dict[str, dict[str, Any]] = {}
    for path in paths:
        for row in json.loads(pathlib.Path(path).read_text()):
            rows[row["file"]] = row
    return rows


def comparable_id(test: str) -> str:
    """Return a test's id without the addresses that some contain, and without the mode.

    Only the ids of errors contain the mode.
    """
    return re.sub(r"0x[0-9a-f]+| \[(graph|eager)_mode\]$", "", test)


def passed_in(row: dict[str, Any]) -> set[str]:
    """Return the tests of a file that passed."""
    return {comparable_id(test) for test in row["passed"]}


def newest(paths: list[str]) -> dict[str, dict[str, str]]:
    """Return {test file: {test: "" if it passed, else the last line of its error}}."""
    results: dict[str, dict[str, str]] = {}
    for path in paths:
        for row in json.loads(pathlib.Path(path).read_text()):
            tests = results.setdefault(row["file"], {})
            tests.update({comparable_id(each[0]): each[1] for each in row["bad"]})
            tests.update(dict.fromkeys(map(comparable_id, row["passed"]), ""))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow", required=True)
    parser.add_argument("--null", required=True)
    parser.add_argument("--section", choices=sorted(SECTIONS), help="write this one alone")
    parser.add_argument("ours", nargs="+")
    options = parser.parse_args()
    reference, null, ours = load([options.tensorflow]), load([options.null]), newest(options.ours)
    table, reasons = tables(reference, null, ours)
    page = sections_of(PAGE.read_text()) if PAGE.exists() else {}
    if options.section:
        parts = [SECTIONS[options.section], table]
        if reasons:
            parts.append(f"### {REASONS}, in these files\n\n{reasons}")
        page[options.section] = "\n".join(parts)
    else:
        page[""] = HEAD + table
        page[REASONS] = reasons
    order = ["", REASONS, *sorted(page.keys() - {"", REASONS})]
    texts = [f"## {name}\n\n{page[name]}" if name else page[name] for name in order]
    PAGE.write_text("\n\n".join(text.strip() for text in texts) + "\n")
    print(table.splitlines()[-1])


def sections_of(page: str) -> dict[str, str]:
    """Return {second-level heading: the text under it}; the text before the first is under ""."""
    first, *others = re.split(r"(?m)^## ", page)
    headed = (other.partition("\n") for other in others)
    return {"": first} | {name: text.strip() for name, _, text in headed}


def tables(
    reference: dict[str, dict[str, Any]],
    null: dict[str, dict[str, Any]],
    ours: dict[str, dict[str, str]],
) -> tuple[str, str]:
    """Return the table of directories, and the table of reasons ("" if no test failed)."""
    table: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0, 0, 0])
    reasons: collections.Counter[str] = collections.Counter()
    for path in sorted(reference.keys() & null.keys()):
        counted = passed_in(reference[path]) - passed_in(null[path])
        mine = ours.get(path, {})
        got = {test for test in counted if mine.get(test) == ""}
        row = table[os.path.dirname(path).removeprefix("tensorflow/python/")]
        row[0] += len(got)
        row[1] += len(counted)
        row[2] += path in ours or not counted
        row[3] += 1
        for test in counted - got:
            reasons[shorten(mine.get(test) or "did not run")] += 1
    table = {name: row for name, row in table.items() if row[1]}
    lines = ["| directory | passed | of R | % | files run |", "| --- | --- | --- | --- | --- |"]
    for name, (got_count, want, run, files) in sorted(table.items()):
        share = 100 * got_count / want
        lines.append(f"| {name} | {got_count} | {want} | {share:.1f} | {run} of {files} |")
    total, want, run, files = (sum(row[k] for row in table.values()) for k in range(4))
    share = 100 * total / max(1, want)
    lines.append(f"| **all** | **{total}** | **{want}** | **{share:.1f}** | {run} of {files} |")
    reason_rows = ["| tests | last line of the error |", "| --- | --- |"]
    reason_rows += [f"| {count} | `{text}` |" for text, count in reasons.most_common(REASONS_SHOWN)]
    return "\n".join(lines) + "\n", "\n".join(reason_rows) + "\n" if reasons else ""


def shorten(text: str) -> str:
    """Return a reason without the parts that vary from run to run, for a table cell."""
    text = re.sub(r"(/[\w.+-]+){2,}", "…", text.strip())
    text = re.sub(r"0x[0-9a-f]+|\d{4,}", "#", text)
    return text.replace("|", "/").replace("`", "'")[:110]


if __name__ == "__main__":
    main()
