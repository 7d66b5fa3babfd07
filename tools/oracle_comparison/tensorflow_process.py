"""Run cases from standard input in TensorFlow, and write the answers to standard output.

Runs in the oracle environment; `reference` starts it, and restarts it after a crash.
"""

import os
import pathlib
import resource
import signal
import sys

ANSWERS = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # TensorFlow's output must not mix with the answers
sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
DEADLINE_EXCEEDED = 4
WAITING = 5  # seconds for one step, which may block on an empty queue
TIMEOUT = 40  # seconds for one case: longer than the timeout of `reference`
MAX_MEMORY = 8 << 30  # bytes of address space: a huge tensor fails instead of using up the memory


def main() -> None:
    from tools.oracle_comparison.wire import pack_answer, read_frame, unpack_case, write_frame
    from tools.record import cases

    cases.tf.compat.v1.disable_eager_execution()
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    config = cases.plain_config()
    # Steps run in this thread: waking other threads would take most of a small step's time.
    config.inter_op_parallelism_threads = -1
    config.operation_timeout_in_ms = 1000 * WAITING
    config.intra_op_parallelism_threads = 1
    write_frame(ANSWERS, cases.tf.__version__)
    while (packed := read_frame(sys.stdin.buffer)) is not None:
        signal.alarm(TIMEOUT)  # ends this process, even inside a kernel
        try:
            steps = cases.answers(unpack_case(packed), config)
            waits = any(each.code == DEADLINE_EXCEEDED for each in steps)
            answers = f"no answer in {WAITING} s" if waits else list(map(pack_answer, steps))
        except Exception as error:  # TensorFlow's Python front end rejected the case: no reference
            answers = f"{type(error).__name__}: {error}"
        signal.alarm(0)
        write_frame(ANSWERS, answers)


main()
