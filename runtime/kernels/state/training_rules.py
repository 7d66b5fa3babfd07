"""Update rules of the optimizers: formulas that write new values into a variable and its slots.

The slots of an optimizer are the variables that it keeps beside the trained variable, such as a sum
of squared gradients. The first parameters of a rule are the arrays of the variable and of its
slots, which all have one shape. The other parameters are the other inputs of the op, in the order
of the op: the gradient, and scalars of the variable's dtype. A rule returns nothing; it writes into
the arrays. In this file, "step" means the change of the variable.

TF: tensorflow/core/kernels/training_ops.cc (functor::Apply…)
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def gradient_descent(var: Array, alpha: Array, delta: Array) -> None:
    """Apply gradient descent: change `var` against the gradient `delta`."""
    var -= alpha * delta


def momentum(
    var: Array, accum: Array, lr: Array, grad: Array, momentum: Array, *, use_nesterov: bool
) -> None:
    """Apply Momentum: change `var` against a decaying sum of gradients."""
    accum[...] = accum * momentum + grad
    var -= grad * lr + accum * momentum * lr if use_nesterov else accum * lr


def keras_momentum(
    var: Array, accum: Array, lr: Array, grad: Array, momentum: Array, *, use_nesterov: bool
) -> None:
    """Apply Keras Momentum: change `var` by a decaying sum of steps (gradients times −`lr`)."""
    accum[...] = accum * momentum - grad * lr
    var += accum * momentum - grad * lr if use_nesterov else accum


def adagrad(var: Array, accum: Array, lr: Array, grad: Array, *, update_slots: bool) -> None:
    """Apply Adagrad: take steps that shrink as the sum of squared gradients grows."""
    if update_slots:
        accum += np.square(grad)
    var -= grad * lr / np.sqrt(accum)


def adagrad_v2(
    var: Array, accum: Array, lr: Array, epsilon: Array, grad: Array, *, update_slots: bool
) -> None:
    """Apply Adagrad with `epsilon` added to the denominator."""
    if update_slots:
        accum += np.square(grad)
    var -= grad * lr / (np.sqrt(accum) + epsilon)


def adagrad_da(
    var: Array,
    gradients: Array,
    squares: Array,
    grad: Array,
    lr: Array,
    l1: Array,
    l2: Array,
    global_step: Array,
) -> None:
    """Apply AdagradDA (Adagrad with dual averaging): use the sums of all gradients so far."""
    step = var.dtype.type(global_step)
    gradients += grad
    squares += np.square(grad)
    total = gradients
    if l1 > 0:
        total = np.sign(gradients) * np.maximum(np.abs(gradients) - l1 * step, 0)
    var[...] = -lr * total / (l2 * step * lr + np.sqrt(squares))


def adagrad_da_of_rows(
    var: Array,
    gradients: Array,
    squares: Array,
    grad: Array,
    lr: Array,
    l1: Array,
    l2: Array,
    global_step: Array,
) -> None:
    """Apply AdagradDA, with numerator and denominator divided by `global_step`.

    TensorFlow's sparse op computes rows of several elements this way. The result differs from
    `adagrad_da` if `global_step` is below 1.
    """
    step = var.dtype.type(global_step)
    gradients += grad
    squares += np.square(grad)
    mean = gradients / step
    if l1 > 0:
        mean = np.sign(gradients) * np.maximum(np.abs(gradients) / step - l1, 0)
    var[...] = -lr * mean / (l2 * lr + np.sqrt(squares) / step)


def adadelta(
    var: Array,
    accum: Array,
    accum_update: Array,
    lr: Array,
    rho: Array,
    epsilon: Array,
    grad: Array,
) -> None:
    """Apply Adadelta: scale the step by the root mean square of earlier steps."""
    one = var.dtype.type(1)
    accum[...] = accum * rho + np.square(grad) * (one - rho)
    update = np.sqrt(accum_update + epsilon) / np.sqrt(accum + epsilon) * grad
    var -= update * lr
    accum_update[...] = accum_update * rho + np.square(update) * (one - rho)


def adam(
    var: Array,
    m: Array,
    v: Array,
    beta1_power: Array,
    beta2_power: Array,
    lr: Array,
    beta1: Array,
    beta2: Array,
    epsilon: Array,
    grad: Array,
    *,
    use_nesterov: bool,
) -> None:
    """Apply Adam: take a step from decaying means of the gradients and of their squares."""
    one = var.dtype.type(1)
    alpha = _adam_moments(m, v, beta1_power, beta2_power, lr, beta1, beta2, grad)
    mean = grad * (one - beta1) + m * beta1 if use_nesterov else m
    var -= mean * alpha / (np.sqrt(v) + epsilon)


def adam_with_amsgrad(
    var: Array,
    m: Array,
    v: Array,
    vhat: Array,
    beta1_power: Array,
    beta2_power: Array,
    lr: Array,
    beta1: Array,
    beta2: Array,
    epsilon: Array,
    grad: Array,
) -> None:
    """Apply Adam with AMSGrad: use the largest mean of squares so far, not the current one."""
    alpha = _adam_moments(m, v, beta1_power, beta2_power, lr, beta1, beta2, grad)
    np.copyto(vhat, v, where=vhat < v)  # if v is NaN, vhat does not change
    var -= m * alpha / (np.sqrt(vhat) + epsilon)


def _adam_moments(
    m: Array,
    v: Array,
    beta1_power: Array,
    beta2_power: Array,
    lr: Array,
    beta1: Array,
    beta2: Array,
    grad: Array,
) -> Array:
    """Update the means `m` and `v`, and return the learning rate.

    The learning rate is corrected for the bias of the means.
    """
    one = m.dtype.type(1)
    m += (grad - m) * (one - beta1)
    v += (np.square(grad) - v) * (one - beta2)
    return lr * np.sqrt(one - beta2_power) / (one - beta1_power)


def ada_max(
    var: Array,
    m: Array,
    v: Array,
    beta1_power: Array,
    lr: Array,
    beta1: Array,
    beta2: Array,
    epsilon: Array,
    grad: Array,
) -> None:
    """Apply AdaMax: Adam with a decaying maximum of absolute gradients, not a mean of squares."""
    one = var.dtype.type(1)
    m += (grad - m) * (one - beta1)
    np.maximum(v * beta2, np.abs(grad), out=v)
    var -= lr / (one - beta1_power) * (m / (v + epsilon))


def rms_prop(
    var: Array,
    ms: Array,
    mom: Array,
    lr: Array,
    rho: Array,
    momentum: Array,
    epsilon: Array,
    grad: Array,
) -> None:
    """Apply RMSProp: divide the gradient by the root of a decaying mean of squared gradients."""
    ms += (np.square(grad) - ms) * (var.dtype.type(1) - rho)
    mom[...] = mom * momentum + grad * lr / np.sqrt(ms + epsilon)
    var -= mom


def centered_rms_prop(
    var: Array,
    mg: Array,
    ms: Array,
    mom: Array,
    lr: Array,
    rho: Array,
    momentum: Array,
    epsilon: Array,
    grad: Array,
) -> None:
    """Apply centered RMSProp: divide the gradient by its standard deviation, estimated by means."""
    kept = var.dtype.type(1) - rho
    ms += (np.square(grad) - ms) * kept
    mg += (grad - mg) * kept
    mom[...] = mom * momentum + grad * lr / np.sqrt(ms - np.square(mg) + epsilon)
    var -= mom


def sparse_rms_prop(
    var: Array,
    ms: Array,
    mom: Array,
    lr: Array,
    rho: Array,
    momentum: Array,
    epsilon: Array,
    grad: Array,
) -> None:
    """Apply RMSProp as TensorFlow's sparse ops do.

    The sparse ops compute a mean as m·ρ + x·(1 − ρ). Therefore an infinite mean stays infinite.
    """
    one = var.dtype.type(1)
    ms[...] = ms * rho + np.square(grad) * (one - rho)
    mom[...] = mom * momentum + one / np.sqrt(ms + epsilon) * lr * grad
    var -= mom


def sparse_centered_rms_prop(
    var: Array,
    mg: Array,
    ms: Array,
    mom: Array,
    lr: Array,
    rho: Array,
    momentum: Array,
    epsilon: Array,
    grad: Array,
) -> None:
    """Apply centered RMSProp as TensorFlow's sparse ops do.

    The sparse ops compute a mean as m·ρ + x·(1 − ρ).
    """
    one = var.dtype.type(1)
    ms[...] = ms * rho + np.square(grad) * (one - rho)
    mg[...] = mg * rho + grad * (one - rho)
    mom[...] = mom * momentum + one / np.sqrt(ms - np.square(mg) + epsilon) * lr * grad
    var -= mom


def ftrl(
    var: Array,
    accum: Array,
    linear: Array,
    grad: Array,
    lr: Array,
    l1: Array,
    l2: Array,
    lr_power: Array,
    *,
    multiply_linear_by_lr: bool,
) -> None:
    """Apply FTRL-Proximal ("follow the regularized leader"), which makes small elements zero."""
    _ftrl(var, accum, linear, grad, grad, (lr, l1, l2, lr_power), multiply_linear_by_lr)


def ftrl_v2(
    var: Array,
    accum: Array,
    linear: Array,
    grad: Array,
    lr: Array,
    l1: Array,
    l2: Array,
    l2_shrinkage: Array,
    lr_power: Array,
    *,
    multiply_linear_by_lr: bool,
) -> None:
    """Apply FTRL-Proximal with L2 shrinkage, which is an L2 penalty on the variable itself."""
    shrunk = grad + var * l2_shrinkage * 2
    _ftrl(var, accum, linear, grad, shrunk, (lr, l1, l2, lr_power), multiply_linear_by_lr)


def _ftrl(
    var: Array,
    accum: Array,
    linear: Array,
    grad: Array,
    shrunk: Array,
    scalars: tuple[Array, Array, Array, Array],
    multiply_linear_by_lr: bool,
) -> None:
    lr, l1, l2, lr_power = scalars
    new_accum = accum + np.square(grad)
    new_power, old_power = _ftrl_power(new_accum, lr_power), _ftrl_power(accum, lr_power)
    if multiply_linear_by_lr:
        linear += shrunk * lr - (new_power - old_power) * var
        limit, quadratic = l1 * lr, new_power + l2 * lr * 2
    else:
        linear += shrunk - (new_power - old_power) / lr * var
        limit, quadratic = l1, new_power / lr + l2 * 2
    shrink = (np.sign(linear) * limit - linear) / quadratic
    var[...] = np.where(np.abs(linear) > limit, shrink, var.dtype.type(0))
    accum[...] = new_accum


def _ftrl_power(accum: Array, lr_power: Array) -> Array:
    power: Array = np.sqrt(accum) if lr_power == -0.5 else np.power(accum, -lr_power)
    return power


def proximal_gradient_descent(var: Array, alpha: Array, l1: Array, l2: Array, delta: Array) -> None:
    """Apply proximal gradient descent: a step against the gradient, then L1 and L2 shrinkage."""
    var[...] = _shrunk(var - delta * alpha, alpha, l1, l2)


def proximal_adagrad(
    var: Array, accum: Array, lr: Array, l1: Array, l2: Array, grad: Array
) -> None:
    """Apply proximal Adagrad: an Adagrad step, then L1 and L2 shrinkage."""
    accum += np.square(grad)
    rate = lr / np.sqrt(accum)
    var[...] = _shrunk(var - grad * rate, rate, l1, l2)


def _shrunk(proximal: Array, rate: Array, l1: Array, l2: Array) -> Array:
    if l1 > 0:
        proximal = np.sign(proximal) * np.maximum(np.abs(proximal) - rate * l1, 0)
    result: Array = proximal / (proximal.dtype.type(1) + rate * l2)
    return result


def add_sign(
    var: Array,
    m: Array,
    lr: Array,
    alpha: Array,
    sign_decay: Array,
    beta: Array,
    grad: Array,
) -> None:
    """Apply AddSign: take larger steps where the gradient and its mean have the same sign."""
    m[...] = m * beta + grad * (var.dtype.type(1) - beta)
    agreement = np.sign(grad) * np.sign(m)
    var -= (agreement * sign_decay + alpha) * lr * grad


def power_sign(
    var: Array,
    m: Array,
    lr: Array,
    logbase: Array,
    sign_decay: Array,
    beta: Array,
    grad: Array,
) -> None:
    """Apply PowerSign: take exponentially larger steps if gradient and mean have the same sign."""
    m[...] = m * beta + grad * (var.dtype.type(1) - beta)
    agreement = np.sign(grad) * np.sign(m)
    var -= np.exp(agreement * (logbase * sign_decay)) * lr * grad
