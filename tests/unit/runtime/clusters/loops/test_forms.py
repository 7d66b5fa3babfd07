"""Forms of values: a normal form, in which the way a graph is written doesn't matter."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.clusters.loops.forms import Activation, Forms, Kind, UnrecognisedError, number_of


@pytest.fixture
def forms() -> Forms:
    return Forms()


def test_equal_forms_are_one_object(forms: Forms) -> None:
    x, h, w = (forms.make(Kind.VARIABLE, detail=i) for i in range(3))
    assert forms.make(Kind.VARIABLE, detail=0) is x
    assert forms.multiply(x, h) is forms.multiply(h, x)
    assert forms.add(x, forms.add(h, w)) is forms.add(forms.add(w, x), h)
    assert forms.constant(np.float32([1, 2])) is forms.constant(np.float32([1, 2]))
    assert forms.constant(np.float32([1, 2])) is not forms.constant(np.float64([1, 2]))


def test_sums_of_products_with_matrices_are_one_form(forms: Forms) -> None:
    x, h = (forms.make(Kind.VARIABLE, detail=i) for i in (0, 1))
    a, b, c, bias = (forms.make(Kind.INVARIANT, detail=i) for i in (2, 3, 4, 5))
    total = forms.add(forms.add(forms.linear([x], [a]), bias), forms.linear([h], [b]))
    assert (total.kind, total.sources, total.matrices) == (Kind.LINEAR, (x, h), (a, b))
    assert len(total.biases) == 1
    doubled = forms.add(total, forms.linear([x], [c]))
    assert doubled.sources == (x, h)
    assert doubled.matrices == (forms.derived("add_matrices", a, c), b)


def test_columns_are_cut_from_what_is_element_wise(forms: Forms) -> None:
    x, a = forms.make(Kind.VARIABLE, detail=0), forms.make(Kind.INVARIANT, detail=1)
    linear = forms.linear([x], [a])
    cut = forms.cut(forms.activated(linear, "Sigmoid"), "part", (-1, 0, 2))
    assert cut is forms.activated(forms.cut(linear, "part", (-1, 0, 2)), "Sigmoid")
    with pytest.raises(UnrecognisedError, match="columns of a VARIABLE"):
        forms.cut(x, "part", (-1, 0, 2))


def test_two_spellings_of_a_hard_sigmoid(forms: Forms) -> None:
    x, a = forms.make(Kind.VARIABLE, detail=0), forms.make(Kind.INVARIANT, detail=1)
    linear = forms.linear([x], [a])
    assert forms.clip(linear, 1.0).detail == Activation("HardSigmoid", 1.0)
    assert forms.divide(forms.clip(linear, 6.0), 6.0).detail == Activation("HardSigmoid", 1 / 6)
    with pytest.raises(UnrecognisedError):
        forms.divide(forms.clip(linear, 6.0), 5.0)


def test_ones_are_neutral_for_their_own_operand_only(forms: Forms) -> None:
    x, y = (forms.make(Kind.VARIABLE, detail=i) for i in (0, 1))
    ones = forms.make(Kind.ONES, x)
    assert forms.multiply(ones, x) is x
    assert forms.multiply(ones, y).kind is Kind.PRODUCT


def test_what_is_known_stays_known(forms: Forms) -> None:
    a, b = (forms.make(Kind.INVARIANT, detail=i) for i in (0, 1))
    assert forms.add(a, b).is_known
    assert forms.multiply(a, b).is_known
    x = forms.make(Kind.VARIABLE, detail=2)
    with pytest.raises(UnrecognisedError):
        forms.add(x, a)
    with pytest.raises(UnrecognisedError):
        forms.multiply(x, a)


def test_numbers(forms: Forms) -> None:
    assert number_of(forms.constant(np.float32([2.5]))) == 2.5
    for form in (forms.constant(np.float32([1, 2])), forms.make(Kind.INVARIANT, detail=0)):
        with pytest.raises(UnrecognisedError):
            number_of(form)


def test_a_graph_can_not_make_forms_without_end(forms: Forms) -> None:
    x, a = forms.make(Kind.VARIABLE, detail=0), forms.make(Kind.INVARIANT, detail=1)
    deep = x
    with pytest.raises(UnrecognisedError, match="more than a few cells"):
        for _ in range(1000):
            deep = forms.multiply(deep, deep)
    wide = forms.add(forms.linear([x], [a]), a)
    with pytest.raises(UnrecognisedError, match="more than a few cells"):
        for _ in range(100):
            wide = forms.add(wide, wide)
    with pytest.raises(UnrecognisedError, match="more than a few cells"):
        for index in range(10_000):
            forms.make(Kind.VARIABLE, detail=index)
