"""Answers cases with TensorFlow, one after another, until its input ends.

Runs in the oracle environment; `reference` starts it, and starts it again when a case ended it.
"""

import os
import pathlib
import resource
import signal
import sys

ANSWERS = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # what TensorFlow prints does not get between the answers
sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
DEADLINE_EXCEEDED = 4
WAITING = 5  # seconds for one step: a queue that stays empty
TIMEOUT = 40  # seconds for one case: longer than `reference` waits for it
MAX_MEMORY = 8 << 30  # bytes of address space: a huge tensor is an error, not a busy machine


def main() -> None:
    from tools import record_cases
    from tools.oracle_comparison.wire import pack_answer, read_frame, unpack_case, write_frame

    record_cases.tf.compat.v1.disable_eager_execution()
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    config = record_cases.plain_config()
    # In this thread: most of a small step is waking others.
    config.inter_op_parallelism_threads = -1
    config.operation_timeout_in_ms = 1000 * WAITING
    config.intra_op_parallelism_threads = 1
    write_frame(ANSWERS, record_cases.tf.__version__)
    while (packed := read_frame(sys.stdin.buffer)) is not None:
        signal.alarm(TIMEOUT)  # ends this process, in a kernel too
        try:
            steps = record_cases.answers(unpack_case(packed), config)
            waits = any(each.code == DEADLINE_EXCEEDED for each in steps)
            answers = f"no answer in {WAITING} s" if waits else list(map(pack_answer, steps))
        except Exception as error:  # the Python front end refused the case: no reference
            answers = f"{type(error).__name__}: {error}"
        signal.alarm(0)
        write_frame(ANSWERS, answers)


main()
