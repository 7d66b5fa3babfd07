"""Default sessions and their context managers: facts 126 to 131."""

from __future__ import annotations

import logging
import threading

import pytest

from runtime.api import InvalidArgumentError
from runtime.client import (
    Graph,
    InteractiveSession,
    Session,
    constant,
    get_default_graph,
    get_default_session,
    no_op,
)


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
