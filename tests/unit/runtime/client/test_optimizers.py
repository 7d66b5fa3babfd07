"""Optimisers: the operations and slots they add, their errors, and user-defined subclasses."""

from __future__ import annotations

import numpy as np
import pytest

import runtime.client as tf

train = tf.train


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def variable(name="w", **options):
    return tf.Variable(np.ones((2, 2), np.float32), name=name, **options)


def test_a_step_is_called_like_the_optimizer_and_counts(session):
    w = variable()
    step = train.get_or_create_global_step()
    update = train.AdamOptimizer(0.1).minimize(tf.reduce_sum(w * w), step)
    assert update.name == "Adam"
    assert tf.get_collection(tf.GraphKeys.TRAIN_OP) == [update]
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run(update)
    assert session.run(step) == 3


def test_slots(session):
    w = variable()
    optimizer = train.MomentumOptimizer(0.1, 0.9)
    assert optimizer.get_slot(w, "momentum") is None
    optimizer.minimize(tf.reduce_sum(w * w))
    assert optimizer.get_slot_names() == ["momentum"]
    assert optimizer.get_slot(w, "momentum").name == "w/Momentum:0"
    assert [each.name for each in optimizer.variables()] == ["w/Momentum:0"]
    assert tf.trainable_variables() == [w]


def test_a_second_optimizer_has_slots_of_its_own(session):
    w = variable()
    for _ in range(2):
        train.AdamOptimizer().minimize(tf.reduce_sum(w * w))
    assert [each.name for each in tf.global_variables()] == [
        "w:0", "beta1_power:0", "beta2_power:0", "w/Adam:0", "w/Adam_1:0",
        "beta1_power_1:0", "beta2_power_1:0", "w/Adam_2:0", "w/Adam_3:0",
    ]  # fmt: skip


def test_slots_stand_in_the_scope_where_they_are_made(session):
    with tf.variable_scope("model"):
        w = tf.get_variable("w", [2])
        train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(w))
    assert tf.global_variables()[-1].name == "model/model/w/Momentum:0"


def test_rows_that_come_twice_are_added_up_first(session):
    table = variable("table")
    rows = tf.gather(table, [0, 0])
    update = train.AdagradOptimizer(1.0, 0.5).minimize(tf.reduce_sum(rows))
    session.run(tf.global_variables_initializer())
    session.run(update)
    once = 1 - 2 / np.sqrt(0.5 + 2**2)
    assert session.run(table) == pytest.approx(np.float32([[once, once], [1, 1]]), rel=1e-5)


def test_numbers_may_be_tensors_and_functions(session):
    w = variable()
    rate = tf.placeholder(tf.float64, [])
    update = train.GradientDescentOptimizer(rate).minimize(tf.reduce_sum(w))
    other = train.GradientDescentOptimizer(lambda: 0.25).minimize(tf.reduce_sum(w))
    session.run(tf.global_variables_initializer())
    session.run(update, {rate: 0.5})
    assert (session.run(w) == 0.5).all()
    session.run(other)
    assert (session.run(w) == 0.25).all()


@pytest.mark.parametrize("gate", [0, 1, 2])
def test_gates(session, gate):
    w, b = variable(), variable("b")
    optimizer = train.GradientDescentOptimizer(1.0)
    pairs = optimizer.compute_gradients(tf.reduce_sum(tf.matmul(w, b)), gate_gradients=gate)
    assert [each for _, each in pairs] == [w, b]
    session.run(tf.global_variables_initializer())
    session.run(optimizer.apply_gradients(pairs))
    assert session.run([w, b])[0].tolist() == [[-1, -1], [-1, -1]]


def test_what_is_refused(session):
    w, other = variable(), variable("other")
    optimizer = train.GradientDescentOptimizer(0.1)
    with pytest.raises(ValueError, match="No gradients provided for any variable, check your"):
        optimizer.minimize(tf.reduce_sum(w), var_list=[other])
    with pytest.raises(ValueError, match=r"No variables provided\."):
        optimizer.apply_gradients([])
    with pytest.raises(ValueError, match="No gradients provided for any variable: "):
        optimizer.apply_gradients([(None, w)])
    with pytest.raises(ValueError, match=r"No variables to optimize\."):
        optimizer.compute_gradients(tf.reduce_sum(w), var_list=[])
    with pytest.raises(ValueError, match="gate_gradients must be one of"):
        optimizer.compute_gradients(tf.reduce_sum(w), gate_gradients=3)
    with pytest.raises(ValueError, match=r"Invalid type 'int32' for .*, expected a floating type"):
        optimizer.compute_gradients(tf.constant(1))
    with pytest.raises(TypeError, match="Argument is not a variable: 3"):
        optimizer.compute_gradients(tf.reduce_sum(w), var_list=[3])
    with pytest.raises(ValueError, match="Must specify the optimizer name"):
        train.AdamOptimizer(name="")
    with pytest.raises(ValueError, match="initial_accumulator_value must be positive: 0"):
        train.AdagradOptimizer(0.1, 0.0)
    with pytest.raises(ValueError, match="learning_rate_power 1 needs to be negative or zero"):
        train.FtrlOptimizer(0.1, 1)
    with pytest.raises(ValueError, match="l1_regularization_strength -1 needs to be positive or"):
        train.FtrlOptimizer(0.1, l1_regularization_strength=-1)


class SignDescent(train.Optimizer):
    """A user-defined optimiser: steps of constant length."""

    def __init__(self):
        super().__init__(False, "SignDescent")

    def _create_slots(self, var_list):
        for each in var_list:
            self._zeros_slot(each, "steps", self._name)

    def _resource_apply_dense(self, grad, handle):
        count = self.get_slot(handle, "steps").assign_add(tf.ones_like(grad))
        return tf.group(handle.assign_sub(tf.sign(grad), read_value=False), count)

    def _apply_dense(self, grad, var):
        return tf.assign_sub(var, tf.sign(grad))


@pytest.mark.parametrize("use_resource", [True, False], ids=["resource", "reference"])
def test_a_kind_of_ones_own(session, use_resource):
    w = variable(use_resource=use_resource)
    optimizer = SignDescent()
    update = optimizer.minimize(tf.reduce_sum(w * 3.0))
    session.run(tf.global_variables_initializer())
    session.run(update)
    assert (session.run(w) == 0).all()
    assert (session.run(optimizer.get_slot(w, "steps")) == int(use_resource)).all()
    with pytest.raises(NotImplementedError, match="SignDescent does not update rows"):
        optimizer.minimize(tf.reduce_sum(tf.gather(w, [0])))


def test_beta_of_ftrl_is_more_of_l2(session):
    w, same = variable(), variable("same")
    updates = [
        train.FtrlOptimizer(0.5, beta=0.25).minimize(tf.reduce_sum(w)),
        train.FtrlOptimizer(0.5, l2_regularization_strength=0.25).minimize(tf.reduce_sum(same)),
    ]
    session.run(tf.global_variables_initializer())
    session.run(updates)
    assert session.run(w).tolist() == session.run(same).tolist()


def test_norms_and_clips(session):
    slices = tf.IndexedSlices([[3.0, 0.0]], [1], [4, 2])
    tensors = [tf.constant([0.0, 4.0]), None, slices]
    assert session.run(tf.global_norm(tensors)) == 5
    clipped, norm = tf.clip_by_global_norm(tensors, 2.5)
    assert clipped[1] is None
    found = session.run([clipped[0], clipped[2], norm])
    assert found[0].tolist() == [0, 2]
    assert found[1].values.tolist() == [[1.5, 0]]
    assert found[2] == 5
    kept, _ = tf.clip_by_global_norm(tensors, 10.0)
    assert session.run(kept[0]).tolist() == [0, 4]
    infinite, _ = tf.clip_by_global_norm([tf.constant([np.inf])], 1.0)
    assert np.isnan(session.run(infinite[0])).all()
    assert session.run(tf.clip_by_norm(tf.constant([3.0, 4.0]), 1.0)) == pytest.approx([0.6, 0.8])
    assert session.run(tf.clip_by_norm(tf.constant([0.0, 0.0]), 1.0)).tolist() == [0, 0]
    with pytest.raises(TypeError, match="t_list should be a sequence"):
        tf.global_norm(tf.constant(1.0))


def test_decays_that_are_refused(session):
    with pytest.raises(ValueError, match="global_step is required"):
        train.exponential_decay(0.1, None, 10, 0.5)
    with pytest.raises(ValueError, match="boundaries should be 1 less than the length of values"):
        train.piecewise_constant(tf.constant(1), [1, 2], [0.1, 0.2])
