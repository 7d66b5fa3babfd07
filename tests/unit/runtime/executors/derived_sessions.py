"""Sessions whose steps derive values from variables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import protos as pb
from runtime.api import DirectSession, RunRequest, SessionOptions
from runtime.executors.derived_executor import DerivedExecutor
from runtime.executors.step import Executor
from runtime.framework.derived_values import DerivedValues, DerivedValuesUse
from runtime.registrations import direct_session_factory
from tests.unit.runtime.graph.passes.divided_steps import VariableGraph
from tests.unit.runtime.sessions.graphs import direct_session

X = np.float32([1, 10])
ONE = np.float32([1, 1])


def scale_graph() -> pb.GraphDef:
    """`y` = x · s, where `s` = 2 v + w; each variable has `init_`, `set_` and `add_` targets.

    `set_` and `add_` take the placeholder `value`. `u` is a variable that `y` does not read.
    """
    graph = VariableGraph()
    value = graph.placeholder("float32", "value")
    for name, initial in (("v", 1), ("w", 3), ("u", 5)):
        handle = graph.handle(name)
        attrs = {"dtype": "float32"}
        first = np.full(2, initial, np.float32)
        graph.add("AssignVariableOp", handle, first, name=f"init_{name}", **attrs)
        graph.add("AssignVariableOp", handle, value, name=f"set_{name}", **attrs)
        graph.add("AssignAddVariableOp", handle, value, name=f"add_{name}", **attrs)
        graph.read(handle, f"r{name}")
    doubled = graph.add("Mul", ("rv:0", value[1]), np.float32([2, 2]), name="doubled")[0]
    s = graph.add("AddV2", doubled, ("rw:0", value[1]), name="s")[0]
    graph.add("Mul", graph.x, s, name="y")
    return graph.graph_def


def in_caller(executor_type: str = "") -> pb.ConfigProto:
    """A configuration with which steps run in the caller's thread."""
    config = pb.ConfigProto(inter_op_parallelism_threads=-1)
    config.experimental.executor_type = executor_type
    return config


def scale_session(config: pb.ConfigProto | None = None) -> DirectSession:
    """A session of `scale_graph` whose variables are initialised; `s` is [5, 5]."""
    session = direct_session(scale_graph(), config or in_caller())
    session.run({}, (), ("init_v", "init_w", "init_u"))
    return session


def forks_of(
    session: DirectSession, count: int, config: pb.ConfigProto | None = None
) -> list[DirectSession]:
    """Sessions that start from the state of `session`, as those of one model do."""
    template = session.freeze_template()
    options = SessionOptions(config=config or in_caller())
    opened = [direct_session_factory().open_template(options, template) for _ in range(count)]
    return [each for each in opened if isinstance(each, DirectSession)]


def y_of(session: DirectSession) -> list[float]:
    """The value of `y` for X."""
    result: list[float] = session.run({"x": X}, ["y"])[0].tolist()
    return result


def change(session: DirectSession, target: str, value: np.ndarray = ONE) -> None:
    """Run `set_` or `add_` of a variable."""
    session.run({"value": value}, (), (target,))


def executor_of(
    session: DirectSession, feeds: Sequence[str] = ("x",), fetches: Sequence[str] = ("y",)
) -> Executor:
    """The executor of a step."""
    return session._graph.compiled(RunRequest(dict.fromkeys(feeds), fetches)).executor


def derived_executor_of(session: DirectSession, *fetches: str) -> DerivedExecutor:
    """The executor of a step that is divided."""
    executor = executor_of(session, fetches=fetches or ("y",))
    assert isinstance(executor, DerivedExecutor)
    return executor


def use_in(session: DirectSession, *fetches: str) -> DerivedValuesUse | None:
    """What the newest run of a step used."""
    executor = derived_executor_of(session, *fetches)
    return session.resources.derived.get(executor._reference)


def derived_in(session: DirectSession, *fetches: str) -> DerivedValues:
    """The values that the newest run of a step used."""
    use = use_in(session, *fetches)
    assert use is not None
    return use.values
