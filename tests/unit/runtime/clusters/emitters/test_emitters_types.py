"""The table of emitters says what the installed engine can do: each op, in each type of its row."""

from __future__ import annotations

import itertools

import pytest

from runtime.clusters.emitters import EMITTERS
from runtime.clusters.op_emitter import OpEmitter
from runtime.framework import op_def_registry
from runtime.framework.dtypes import DataType
from tests.unit.runtime.clusters.emitted import emitted
from tests.unit.runtime.clusters.emitters.test_emitters_recorded import OPS
from tests.unit.runtime.clusters.examples import example


@pytest.mark.parametrize("op", OPS)
def test_every_type_of_a_row_compiles_and_runs(op: str) -> None:
    row = EMITTERS[op]
    count = 0
    for types in itertools.product(*(sorted(allowed) for allowed in row.types.values())):
        made = example(row, dict(zip(row.types, types, strict=True)))
        shapes = [array.shape for array in made.feeds.values()]
        emitted(made.graph, made.feeds, made.fetches, shapes=shapes).check()
        count += 1
    assert count > 0


@pytest.mark.parametrize("op", OPS)
def test_a_row_names_types_that_the_op_allows(op: str) -> None:
    row: OpEmitter = EMITTERS[op]
    attrs = {attr.name: attr for attr in op_def_registry.look_up(op).attr}
    for name, allowed in row.types.items():
        listed = [DataType(number) for number in attrs[name].allowed_values.list.type]
        assert attrs[name].type == "type"
        assert not listed or allowed <= set(listed)
