"""Record the element types for which TensorFlow has kernels, but for which no graph succeeds.

Run in an environment that has tensorflow, from the root of the repository:

    python tools/record/types_out_of_reach.py

Runs `ATTEMPTS` of tools/record/attempted_types.py in TensorFlow, each in a separate process, and
writes {op.attribute: {error: types}} to docs/types_out_of_reach.json. The error is TensorFlow's
message or the signal that ended the process. An attempt that succeeds is an error of this tool:
a conformance case can cover that type.
"""

from __future__ import annotations

import collections
import json
import multiprocessing
import os
import pathlib
import re
import signal
import sys
from multiprocessing.connection import Connection

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import tensorflow as tf

from runtime.framework.dtypes import DataType, from_name
from tests.conformance.case import Case
from tools.record.attempted_types import ATTEMPTS
from tools.record.cases import answers

OUT_OF_REACH = ROOT / "docs" / "types_out_of_reach.json"


def error_of(case: Case) -> str:
    """Return TensorFlow's error or the signal that ended its process; "" if every step succeeds."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(case, sender))
    process.start()
    sender.close()
    try:
        return plain(receiver.recv())
    except EOFError:
        process.join()
        return f"TensorFlow's process ends: {signal.Signals(-(process.exitcode or 0)).name}"
    finally:
        process.join()


def _run(case: Case, sender: Connection) -> None:
    errors = [answer.message for answer in answers(case) if answer.code]
    sender.send(errors[0] if errors else "")


def plain(message: str) -> str:
    """Return the first line without the parts that vary from run to run."""
    first = message.split("\n")[0].split(" used by ")[0]
    return re.sub(r"but got -?\d{4,}$", "but got what lies in memory", first)


def without_type(error: str, data_type: DataType) -> str:
    """Return the error without the type's number, so that types with the same error share a row."""
    return re.sub(rf"\b{data_type.value}$", "the type's number", error)


def main() -> None:
    tf.compat.v1.disable_eager_execution()
    found: dict[str, dict[str, list[str]]] = collections.defaultdict(dict)
    for (key, name), attempt in ATTEMPTS.items():
        error = error_of(attempt(from_name(name)))
        if not error:
            raise SystemExit(f"TensorFlow answers {key} of {name}: a case can show it")
        reason = without_type(error, from_name(name))
        found[key].setdefault(reason, []).append(name)
    rows = {
        key: {error: " ".join(types) for error, types in each.items()}
        for key, each in found.items()
    }
    OUT_OF_REACH.write_text(json.dumps(rows, indent=0, sort_keys=True) + "\n")
    print(f"{len(ATTEMPTS)} attempts, {sum(map(len, rows.values()))} reasons")


if __name__ == "__main__":
    main()
