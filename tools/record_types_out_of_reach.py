"""Record the element types that TensorFlow has kernels for and that no graph brings to an end.

Run in an environment that has tensorflow, from the root of the repository:

    python tools/record_types_out_of_reach.py

`ATTEMPTS` of tools/types_out_of_reach.py are run in TensorFlow, each in a process of its own.
docs/types_out_of_reach.json gets {op.attribute: {TensorFlow's words: types}} for those that end in
an error or end the process. One that is answered is an error here: its type can be reached.
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
ROOT = pathlib.Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import tensorflow as tf
from record_cases import answers
from types_out_of_reach import ATTEMPTS

from runtime.framework.dtypes import DataType, from_name
from tests.conformance.case import Case

OUT_OF_REACH = ROOT / "docs" / "types_out_of_reach.json"


def error_of(case: Case) -> str:
    """TensorFlow's error, or how its process ended; empty when it answers every step."""
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
    """One line without what another run or another type would change."""
    first = message.split("\n")[0].split(" used by ")[0]
    return re.sub(r"but got -?\d{4,}$", "but got what lies in memory", first)


def without_type(error: str, data_type: DataType) -> str:
    """The error without the number of the type, so that types that fail alike are one row."""
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
