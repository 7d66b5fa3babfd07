"""The best trees of digraphs against all trees, their gradients, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import runtime.client as tf
from runtime.client import ops
from runtime.foundation.errors import CancelledError, FailedPreconditionError, InvalidArgumentError
from runtime.foundation.running_task import set_running_task
from runtime.op_packages.text.spanning_trees import max_spanning_tree
from tests.unit.runtime.op_packages.text.test_text_memory import check


def leads_to_a_root(sources: tuple[int, ...]) -> bool:
    for node in range(len(sources)):
        for _ in sources:
            node = sources[node]
        if sources[node] != node:
            return False
    return True


def best_total(scores: np.ndarray, forest: bool) -> float:
    """The score of the best of all trees."""
    places = range(len(scores))
    return max(
        sum(scores[target, source] for target, source in enumerate(sources))
        for sources in itertools.product(places, repeat=len(scores))
        if leads_to_a_root(sources)
        and (forest or sum(source == target for target, source in enumerate(sources)) == 1)
    )


@pytest.mark.parametrize("forest", [True, False])
def test_the_best_of_all_trees(forest: bool) -> None:
    source = np.random.default_rng(3)
    scores = source.integers(-9, 9, (40, 5, 5)).astype(np.int32)
    sizes = source.integers(1, 6, 40).astype(np.int32)
    totals, sources = max_spanning_tree(sizes, scores, forest=forest)
    for each, size, total, taken in zip(scores, sizes, totals, sources, strict=True):
        assert total == best_total(each[:size, :size], forest)
        assert leads_to_a_root(tuple(taken[:size]))
        assert (taken[size:] == -1).all()


def test_a_contraction_within_a_contraction() -> None:
    # 0 ⇄ 1, then 2 ⇄ (0 1), and 3 is the root that breaks both
    scores = np.full((1, 4, 4), -np.inf, np.float32)
    for target, source, score in (
        (0, 1, 9), (1, 0, 9), (2, 1, 8), (0, 2, 7), (2, 3, 1), (3, 3, 1),
    ):  # fmt: skip
        scores[0, target, source] = score
    totals, sources = max_spanning_tree(np.array([4], np.int32), scores, forest=False)
    assert sources.tolist() == [[2, 0, 3, 3]]
    assert totals.tolist() == [18]


@pytest.mark.parametrize(
    ("sizes", "shape", "words"),
    [
        ([[1]], (1, 2, 2), "num_nodes must be a vector"),
        ([1], (2, 2), "scores must be rank 3"),
        ([1, 1], (1, 2, 2), r"num_nodes misshapen: got \[2\] but expected \[1\]"),
        ([1], (1, 2, 3), "scores misshapen"),
        ([3], (1, 2, 2), "digraph 0 overflows input dimension: got 3"),
        ([1, 0], (2, 2, 2), r"digraph 1 must be in \[1, 32767\], got 0"),
        ([-1], (1, 2, 2), "must be in"),
    ],
)
def test_arguments_that_do_not_fit(sizes: list[int], shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        max_spanning_tree(np.array(sizes, np.int32), np.zeros(shape, np.float32), forest=True)


def test_digraphs_that_no_tree_spans() -> None:
    scores = np.full((1, 2, 2), np.nan)
    sizes = np.array([2], np.int32)
    with pytest.raises(FailedPreconditionError, match="Infeasible digraph"):
        max_spanning_tree(sizes, scores, forest=True)
    np.fill_diagonal(scores[0], 1)
    assert max_spanning_tree(sizes, scores, forest=True)[0].tolist() == [2]
    with pytest.raises(FailedPreconditionError, match="Infeasible digraph"):
        max_spanning_tree(sizes, scores, forest=False)


def test_the_gradient_is_that_of_the_arcs_in_the_tree() -> None:
    scores = np.random.default_rng(4).standard_normal((2, 4, 4))
    with tf.Graph().as_default(), tf.Session() as session:
        given = tf.constant(scores)
        totals, sources = ops.MaxSpanningTree(tf.constant([4, 3], "int32"), given)
        (slopes,) = tf.gradients([totals], [given], [tf.constant([2.0, 5.0], "float64")])
        found, arcs = session.run([slopes, sources])
    expected = np.zeros_like(scores)
    for batch, target in itertools.product(range(2), range(4)):
        if arcs[batch, target] >= 0:
            expected[batch, target, arcs[batch, target]] = (2, 5)[batch]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_the_memory_bound_holds(dtype: type) -> None:
    scores = np.random.default_rng(5).integers(0, 99, (2, 300, 300)).astype(dtype)
    check("MaxSpanningTree", [np.array([300, 200], np.int32), scores], {"forest": False})


def test_a_cancelled_step_ends() -> None:
    set_running_task([CancelledError("the step was cancelled")])
    try:
        with pytest.raises(CancelledError):
            max_spanning_tree(np.array([1], np.int32), np.zeros((1, 1, 1)), forest=False)
    finally:
        set_running_task(())
