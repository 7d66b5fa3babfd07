"""Sessions of the front end: facts 8, 9, 61, 84 to 86, 126 to 131."""

from __future__ import annotations

import gc
import logging
import threading
import weakref

import numpy as np
import pytest

import protos as pb
from runtime.api import CancelledError, InvalidArgumentError, NotFoundError
from runtime.client import (
    Graph,
    InteractiveSession,
    Session,
    Variable,
    cond,
    constant,
    float32,
    get_default_graph,
    get_default_session,
    group,
    int32,
    no_op,
    ops,
    placeholder,
    while_loop,
)


@pytest.fixture
def graph():
    with Graph().as_default() as graph:
        yield graph


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": 1}, 'Argument `target` must be a string, but got "int"'),
        ({"graph": 1}, 'Argument `graph` must be a tf.Graph, but got "int"'),
        ({"config": 1}, 'Argument `config` must be a tf.ConfigProto, but got "int"'),
    ],
)
def test_arguments_of_other_types(arguments, message):
    with pytest.raises(TypeError) as error:
        Session(**arguments)
    assert str(error.value) == message


def test_a_target_that_nobody_accepts(graph):
    with pytest.raises(NotFoundError, match="No session factory registered for the given session"):
        Session("local")


def test_an_empty_graph_can_have_a_session_but_not_a_run():
    session = Session(graph=Graph())
    with pytest.raises(RuntimeError) as error:
        session.run([])
    assert str(error.value) == (
        "The Session graph is empty. Add operations to the graph before calling run()."
    )


def test_a_finalized_graph_takes_no_operation(graph):
    constant(1.0)
    graph.finalize()
    assert graph.finalized
    with pytest.raises(RuntimeError) as error:
        constant(2.0)
    assert str(error.value) == "Graph is finalized and cannot be modified."


def test_close_ends_a_dequeue_that_waits(graph):
    queue = ops.FIFOQueueV2([float32], name="q")
    dequeued = ops.QueueDequeueV2(queue, [float32], name="deq")[0]
    started = ops.QueueSizeV2(queue)
    session = Session()
    session.run(started)
    errors = []

    def run():
        try:
            session.run(dequeued)
        except CancelledError as error:
            errors.append(error.message)

    thread = threading.Thread(target=run)
    thread.start()
    while not session.runtime_session.executor_cache.misses > 1:
        thread.join(0.001)
    session.close()
    thread.join()
    assert errors[0] in (
        "Dequeue operation was cancelled\n\t [[{{node deq}}]]",
        "Run call was cancelled",  # closed before the dequeue started
    )


def test_a_closed_session(graph):
    one = constant(1.0)
    session = Session()
    session.run(one)
    session.close()
    session.close()
    for call in (
        lambda: session.run(one),
        lambda: session.partial_run_setup([one], []),
        lambda: session.partial_run("handle", [one]),
    ):
        with pytest.raises(RuntimeError) as error:
            call()
        assert str(error.value) == "Attempted to use a closed Session."
    prepared = session.make_callable(one)
    for call in (prepared, session.list_devices):
        with pytest.raises(CancelledError) as cancelled:
            call()
        assert cancelled.value.message == "Session has been closed."


def test_operations_added_after_a_run_are_sent_before_the_next(graph):
    with Session() as session:
        one = constant(1.0)
        assert session.run(one) == 1
        two = one + 1
        assert session.run(two) == 2
        assert session.make_callable(two + 1)() == 3
        variable = Variable(5.0)
        session.run(variable.initializer)
        assert session.run(variable) == 5


def test_four_threads_of_concurrent_runs_and_callables(graph):
    x = placeholder(int32, [])
    doubled = x * 2
    wrong = []
    with Session() as session:
        prepared = session.make_callable(doubled, [x])

        def work(first):
            for value in range(first, first + 1000):
                if value % 2:
                    result = session.run(doubled, {x: value})
                else:
                    result = prepared(value)
                if result != 2 * value:
                    wrong.append((value, result))

        threads = [threading.Thread(target=work, args=(1000 * index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_eval_and_run_need_a_session(graph):
    one, nothing = constant(1.0), no_op()
    with pytest.raises(ValueError) as error:
        one.eval()
    assert str(error.value) == (
        "Cannot evaluate tensor using `eval()`: No default session is registered. Use "
        "`with sess.as_default()` or pass an explicit session to `eval(session=sess)`"
    )
    with pytest.raises(ValueError) as error:
        nothing.run()
    assert str(error.value) == (
        "Cannot execute operation using `run()`: No default session is registered. Use "
        "`with sess.as_default():` or pass an explicit session to `run(session=sess)`"
    )
    session = Session()
    assert one.eval(session=session) == 1
    assert nothing.run(session=session) is None


def test_eval_and_run_in_a_session_of_another_graph(graph):
    one, nothing = constant(1.0), no_op()
    other = Session(graph=Graph())
    messages = {
        lambda: one.eval(session=other): "Cannot use the given session to evaluate tensor: the "
        "tensor's graph is different from the session's graph.",
        lambda: nothing.run(session=other): "Cannot use the given session to execute operation: "
        "the operation's graph is different from the session's graph.",
    }
    with other.as_default():
        messages |= {
            one.eval: "Cannot use the default session to evaluate tensor: the tensor's graph is "
            "different from the session's graph. Pass an explicit session to "
            "`eval(session=sess)`.",
            nothing.run: "Cannot use the default session to execute operation: the operation's "
            "graph is different from the session's graph. Pass an explicit session to "
            "run(session=sess).",
        }
        for call, message in messages.items():
            with pytest.raises(ValueError) as error:
                call()
            assert str(error.value) == message


def test_default_sessions_nest(graph):
    one = constant(1.0)
    outer, inner = Session(), Session()
    assert get_default_session() is None
    with outer.as_default():
        with inner.as_default():
            assert get_default_session() is inner
        assert get_default_session() is outer
    assert get_default_session() is None
    assert outer.run(one) == 1  # as_default does not close
    with outer:
        assert get_default_session() is outer
        assert get_default_graph() is graph
    with pytest.raises(RuntimeError, match="Attempted to use a closed Session"):
        outer.run(one)


def test_a_session_is_not_entered_twice_at_a_time(graph):
    session = Session()
    with session, pytest.raises(RuntimeError) as error, session:
        pass
    assert str(error.value) == (
        "Session context managers are not re-entrant. Use `Session.as_default()` if you want to "
        "enter a session multiple times."
    )


def test_an_error_inside_is_logged_and_the_session_closes(graph, caplog):
    one = constant(1.0)
    session = Session()
    with pytest.raises(InvalidArgumentError), session:
        raise InvalidArgumentError("no good")
    assert "Session closing due to error no good" in caplog.text
    with pytest.raises(RuntimeError):
        session.run(one)


def test_default_sessions_and_graphs_belong_to_a_thread(graph):
    seen = []
    with Session().as_default():
        thread = threading.Thread(
            target=lambda: seen.extend([get_default_session(), get_default_graph()])
        )
        thread.start()
        thread.join()
    assert seen[0] is None
    assert seen[1] is not graph


def test_defaults_have_to_be_left_in_order(graph):
    outer, inner = Session().as_default(), Session().as_default()
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(AssertionError, match="Nesting violated for default stack of <class"):
        outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    from runtime.client.framework.default_stacks import default_sessions

    default_sessions.remove(default_sessions.innermost)


def test_interactive_sessions_are_the_default_until_closed(caplog):
    mine = Graph()
    first = InteractiveSession(graph=mine)
    try:
        assert get_default_session() is first
        assert get_default_graph() is mine
        one = constant(1.0)
        assert one.eval() == 1
        with caplog.at_level(logging.ERROR):
            second = InteractiveSession(graph=mine)
        assert caplog.messages[0].startswith("An interactive session is already active. ")
        second.close()
        assert get_default_session() is first
    finally:
        first.close()
        first.close()
    assert get_default_session() is None
    assert get_default_graph() is not mine


def test_callables(graph):
    x, y = placeholder(float32, [None], name="x"), placeholder(float32, name="y")
    total = x + y
    with Session() as session:
        assert session.make_callable([total, total.op], [x, "y:0"])([1, 2], 3)[0].tolist() == [4, 5]
        assert session.make_callable({"x": x, "s": total}, [x, y])([1], 1)["s"].tolist() == [2]
        with_options = session.make_callable(total, [x, y], accept_options=True)
        metadata = pb.RunMetadata()
        traced = pb.RunOptions(trace_level=pb.RunOptions.FULL_TRACE)
        assert with_options([1], 2, options=traced, run_metadata=metadata).tolist() == [3]
        assert metadata.step_stats.dev_stats
        with pytest.raises(InvalidArgumentError) as error:
            session.make_callable(total, [x, y])([1])
        assert error.value.message == "Expected 2 feed tensors, but got 1"
        with pytest.raises(TypeError) as wrong:
            session.make_callable(total, x)
        assert str(wrong.value) == (
            f"Argument `feed_list` must be a list or tuple. Received: feed_list={x}"
        )


def test_partial_runs(graph):
    x, y = placeholder(float32, [], name="x"), placeholder(float32, [], name="y")
    first = x + 1
    second = first * y
    nothing = group(second, name="grp")
    with Session() as session:
        handle = session.partial_run_setup([first, second, nothing], [x, y])
        assert session.partial_run(handle, first, {x: 1}) == 2
        with pytest.raises(RuntimeError) as error:
            session.partial_run(handle, [second, nothing], {y: 3})
        assert str(error.value) == (
            "partial_run() requires empty `target_list`. Received: "
            "target_list=[<tf.Operation 'grp' type=NoOp>] (non-empty)"
        )
        assert session.partial_run(handle, {"s": second}, {"y:0": 4}) == {"s": np.float32(8)}


def test_what_a_session_tells_of_itself(graph):
    constant(1.0, name="one")
    session = Session()
    assert session.graph is graph
    assert session.sess_str == b""
    assert [node.name for node in session.graph_def.node] == ["one"]
    device = session.list_devices()[0]
    assert device.name == "/job:localhost/replica:0/task:0/device:CPU:0"
    assert (device.device_type, device.memory_limit_bytes) == ("CPU", 1 << 28)


def test_reset_closes_the_sessions_of_a_target(graph):
    one = constant(1.0)
    session = Session()
    session.run(one)
    Session.reset("")
    with pytest.raises(CancelledError):
        session.run(one)


def test_a_session_that_nobody_holds_is_closed(graph):
    one = constant(1.0)
    session = Session()
    session.run(one)
    underneath = session.runtime_session
    gone = weakref.ref(session)
    del session
    gc.collect()
    assert gone() is None
    assert underneath.is_closed


def test_a_graph_outlives_its_sessions_and_counts_them(graph):
    variable = Variable(1.0)
    first, second = Session(), Session()
    assert graph.open_sessions == 2
    first.run(variable.initializer)
    first.close()
    first.close()
    assert graph.open_sessions == 1
    second.run(variable.initializer)  # the other session stays open, with separate state
    assert second.run(variable.assign_add(1.0)) == 2
    second.close()
    assert graph.open_sessions == 0
    with Session() as third:
        assert third.run(variable.is_initialized()) == False  # noqa: E712 # a numpy scalar
    graph.finalize()
    dropped = Session()
    assert graph.open_sessions == 1
    del dropped
    gc.collect()
    assert graph.open_sessions == 0


def test_a_trace_shows_the_bodies_that_are_called(graph):
    n = placeholder(float32, [])
    halved = while_loop(lambda v: v > 1, lambda v: cond(v > 2, lambda: v / 2, lambda: v - 1), (n,))
    options = pb.RunOptions(trace_level=pb.RunOptions.FULL_TRACE)
    metadata = pb.RunMetadata()
    with Session() as session:
        assert session.run(halved, {n: 8}, options=options, run_metadata=metadata) == 1
    (device,) = metadata.step_stats.dev_stats
    ran = [each.timeline_label.split(" = ")[1] for each in device.node_stats]
    assert ran.count("RealDiv()") == 2
    assert ran.count("Sub()") == 1
    assert ran.count("StatelessIf()") == 3
    assert ran.count("StatelessWhile()") == 1
    assert any(each.node_name.startswith("while_body") for each in device.node_stats)
