"""A write drops what depends on the variable, and nothing else."""

from __future__ import annotations

import numpy as np

from runtime.framework.derived_values import DerivedValues, DerivedValuesInUse, DerivedValuesUse
from runtime.framework.dtypes import DataType
from runtime.framework.resource_manager import ResourceManager
from runtime.framework.resources.variable import Variable


def variable(in_use: DerivedValuesInUse) -> Variable:
    made = Variable(DataType.FLOAT, "v")
    made.assign(np.zeros(2, np.float32))
    made.derived = in_use
    return made


def use_of(*variables: Variable) -> DerivedValuesUse:
    arrays = tuple(each.read() for each in variables)
    generations = tuple(each.generation for each in variables)
    return DerivedValuesUse(None, DerivedValues((), arrays, generations, 8), is_own=True)


def add_one(array: np.ndarray) -> None:
    array += 1


def test_every_kind_of_write_drops_what_depends_on_the_variable() -> None:
    in_use: DerivedValuesInUse = {}
    v, w = variable(in_use), variable(in_use)
    for write in (lambda: v.assign(np.ones(2)), lambda: v.update(add_one), v.forget):
        in_use |= {"both": use_of(v, w), "other": use_of(w)}
        write()
        assert list(in_use) == ["other"]


def test_a_fork_is_not_derived_from_yet() -> None:
    in_use: DerivedValuesInUse = {}
    v = variable(in_use)
    in_use["step"] = use_of(v)
    fork = v.fork()
    assert fork.generation == v.generation
    fork.update(add_one)
    assert list(in_use) == ["step"]
    assert fork.generation > v.generation


def test_no_two_writes_have_the_same_generation() -> None:
    v, w = variable({}), variable({})
    seen = [v.generation, w.generation]
    for each in (v, w, v):
        each.update(add_one)
        seen.append(each.generation)
    assert len(set(seen)) == len(seen)


def test_a_manager_counts_the_bytes_of_its_own_values() -> None:
    resources = ResourceManager()
    resources.derived["own"] = use_of()
    resources.derived["shared"] = use_of()._replace(is_own=False)
    assert resources.bytes_held == 8
    resources.clear()
    assert resources.bytes_held == 0
