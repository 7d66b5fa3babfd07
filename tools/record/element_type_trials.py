"""Find which other element types TensorFlow accepts in a recorded case.

A trial is a recorded case with one type attribute changed (tools/record/retyping.py). Some trials
crash TensorFlow, so each attribute is tried in a child process, which is started again without the
trial that crashed.
"""

from __future__ import annotations

import collections
import itertools
import multiprocessing
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

import tensorflow as tf

from runtime.framework.dtypes import DataType
from tests.conformance.case import Answer, Case
from tests.conformance.shown_types import answered_nodes, recorded_cases, type_slots
from tools.record.cases import plain_config
from tools.record.retyping import NotRetypableError, Retyping, joined

MAX_BASES = 5  # recorded cases in which an attribute's types are tried
MAX_EXAMINED = 60  # recorded cases that are examined to find them
# (family, case)
Base = tuple[str, Case]


def bases_by_attribute(families: Sequence[str]) -> dict[tuple[str, str], list[Base]]:
    """Return (op, attribute) → recorded (family, case) that name a type there, best first."""
    found: dict[tuple[str, str], list[Any]] = collections.defaultdict(list)
    for family, case, answers in recorded_cases(families):
        if any(answer.code for answer in answers):
            continue
        nodes = answered_nodes(case, answers)
        rank = (*preference(case, answers), family, case.name)
        for place in {(node.op, slot[1]) for node in nodes for slot, _ in type_slots(node)}:
            found[place].append((rank, (family, case)))
    return {
        place: [base for _, base in sorted(rows, key=lambda row: row[0])]
        for place, rows in found.items()
    }


def preference(case: Case, answers: Sequence[Answer]) -> tuple[Any, ...]:
    """Return a sort key: first cases with compared, finite values, no functions, few nodes."""
    fed = sum(value.size for step in case.steps for value in step.feeds.values())
    values = [value for answer in answers for value in answer.values]
    got = sum(value.size for value in values)
    return (
        case.shape_only,
        bool(case.graph.library.function),
        got < 2,
        max(got, fed) > 400,
        any(bool((value != value).any()) for value in values if value.dtype.kind in "fc"),
        len(case.graph.node) > 14,
        fed < 4,
        len(case.graph.node),
        fed + got,
    )


def retypable(op: str, attr: str, bases: Sequence[Base]) -> list[tuple[str, Retyping]]:
    """Return up to MAX_BASES (family, Retyping) of cases in which the attribute can be changed."""
    found = []
    for family, case in itertools.islice(bases, MAX_EXAMINED):
        try:
            found.append((family, Retyping(case, op, attr)))
        except NotRetypableError:
            continue
        if len(found) == MAX_BASES:
            break
    return found


def accepted(retypings: Sequence[Retyping], types: set[DataType]) -> dict[DataType, int]:
    """Return type → the number of the first case that TensorFlow answers with that type."""
    taken: dict[DataType, int] = {}
    skip: set[tuple[int, DataType]] = set()
    context = multiprocessing.get_context("fork")
    while True:
        receiver, sender = context.Pipe(duplex=False)
        arguments = (retypings, types - taken.keys(), skip, sender)
        process = context.Process(target=_try_all, args=arguments)
        process.start()
        sender.close()
        begun = None
        try:
            while (report := receiver.recv()) is not None:
                begun, answered = report
                if answered:
                    taken[begun[1]] = begun[0]
            return taken
        except EOFError:  # TensorFlow crashed
            if begun is None:
                raise
            skip.add(begun)
        finally:
            process.join()


def _try_all(
    retypings: Sequence[Retyping],
    types: set[DataType],
    skip: set[tuple[int, DataType]],
    reports: Connection,
) -> None:
    """Send ((number of the case, type), False) before each trial, with True after success.

    None follows the last trial.
    """
    for number, retyping in enumerate(retypings):
        parts = {}
        for new in sorted(types):
            if (number, new) not in skip:
                try:
                    parts[new] = retyping.to(new)
                except (ValueError, TypeError, OverflowError):  # a value that the type cannot hold
                    continue
        for new, trial in _trials(parts):
            reports.send(((number, new), False))
            if _answers(*trial):
                reports.send(((number, new), True))
                types = types - {new}
    reports.send(None)


def _trials(
    parts: dict[DataType, Case],
) -> list[tuple[DataType, tuple[Case, tf.compat.v1.Session | None]]]:
    """Return (type, (case, session)) of each case.

    The session holds all the graphs; it is None if their import failed: each case needs its own.
    """
    cases = {new: joined(new.tf_name, {new.tf_name: case}) for new, case in parts.items()}
    try:
        session = _session(list(cases.values()))
    except ValueError:  # the signature or shape inference rejects one of the graphs
        session = None
    return [(new, (case, session)) for new, case in cases.items()]


def _session(cases: list[Case]) -> tf.compat.v1.Session:
    graph = tf.Graph()
    with graph.as_default():
        for case in cases:
            proto = tf.compat.v1.GraphDef.FromString(case.graph.SerializeToString())
            tf.import_graph_def(proto, name="")
    return tf.compat.v1.Session(graph=graph, config=plain_config())


def _answers(case: Case, session: tf.compat.v1.Session | None) -> bool:
    """Return whether every step succeeds in TensorFlow."""
    try:
        session = session or _session([case])
        for step in case.steps:
            targets = [session.graph.get_operation_by_name(name) for name in step.targets]
            session.run([list(step.fetches), targets], dict(step.feeds))
    except (tf.errors.OpError, ValueError, TypeError):
        return False
    return True
