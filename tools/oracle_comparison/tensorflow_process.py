"""Answers cases with TensorFlow, one after another, until its input ends.

Runs in the oracle environment; `reference` starts it, and starts it again when a case ended it.
"""

import os
import pathlib
import resource
import sys

ANSWERS = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # what TensorFlow prints does not get between the answers
sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
MAX_MEMORY = 8 << 30  # bytes of address space: a huge tensor is an error, not a busy machine


def main() -> None:
    from tools import record_cases
    from tools.oracle_comparison.wire import pack_answer, read_frame, unpack_case, write_frame

    record_cases.tf.compat.v1.disable_eager_execution()
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    config = record_cases.plain_config()
    config.inter_op_parallelism_threads = (
        -1
    )  # in this thread: most of a small step is waking others
    config.intra_op_parallelism_threads = 1
    write_frame(ANSWERS, record_cases.tf.__version__)
    while (packed := read_frame(sys.stdin.buffer)) is not None:
        try:
            steps = record_cases.answers(unpack_case(packed), config)
            answers = [pack_answer(each) for each in steps]
        except Exception as error:  # the Python front end refused the case: no reference
            answers = f"{type(error).__name__}: {error}"
        write_frame(ANSWERS, answers)


main()
