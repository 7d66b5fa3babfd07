"""The table that processes share."""

from __future__ import annotations

import contextlib
import select
import subprocess
import sys

from server.processes.host_table import HostTable, WorkerState


def test_another_process_sees_what_is_written_and_waits_for_the_lock() -> None:
    table = HostTable.create(2)
    program = (
        "import sys\n"
        "from server.processes.host_table import HostTable\n"
        "table = HostTable(int(sys.argv[1]), 2)\n"
        "table.rows[1].sessions = table.rows[0].sessions + 1\n"
        "print('waits', flush=True)\n"
        "with table.locked():\n"
        "    print(table.rows[0].sessions, flush=True)\n"
    )
    table.rows[0].sessions = 4
    command = [sys.executable, "-c", program, str(table.descriptor)]
    descriptors = [table.descriptor]
    with contextlib.ExitStack() as stack:
        lock = stack.enter_context(contextlib.ExitStack())
        lock.enter_context(table.locked())
        process = stack.enter_context(
            subprocess.Popen(command, pass_fds=descriptors, stdout=subprocess.PIPE, text=True)
        )
        stack.callback(process.kill)
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        assert table.rows[1].sessions == 5
        table.rows[0].sessions = 7
        # Nothing more comes while the lock is held.
        assert select.select([process.stdout], [], [], 0.1) == ([], [], [])
        lock.close()
        assert process.stdout.readline() == "7\n"


def test_a_worker_that_ends_leaves_its_reason_and_no_counts() -> None:
    table = HostTable.create(3)
    table.begin(1, 1234)
    row = table.rows[1]
    row.state, row.sessions, row.pending = WorkerState.READY, 3, 2
    table.end(1, "killed by signal 9 " + "é" * 100)
    assert (row.generation, row.process_id, row.state) == (1, 0, WorkerState.ENDED)
    assert (row.sessions, row.pending) == (0, 0)
    assert table.ending_of(1).startswith("killed by signal 9 éé")
    assert table.ending_of(0) == ""
    assert [each.generation for each in table.others(1)] == [0, 0, 0]
