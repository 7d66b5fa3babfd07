"""Gradients of the fused LSTM and GRU cells.

TF: tensorflow/core/kernels/rnn/lstm_ops.cc, lstm_ops.h, gru_ops.h
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.math.accumulation import widen
from runtime.kernels.nn.recurrent_cells import check_gru, check_lstm

Arrays = tuple[np.ndarray, ...]


def lstm_block_cell_grad(
    x: np.ndarray,
    cs_prev: np.ndarray,
    h_prev: np.ndarray,
    w: np.ndarray,
    wci: np.ndarray,
    wcf: np.ndarray,
    wco: np.ndarray,
    b: np.ndarray,
    i: np.ndarray,
    cs: np.ndarray,
    f: np.ndarray,
    o: np.ndarray,
    ci: np.ndarray,
    co: np.ndarray,
    cs_grad: np.ndarray,
    h_grad: np.ndarray,
    *,
    use_peephole: bool,
) -> Arrays:
    """LSTMBlockCellGrad: return the gradients of one time step of an LSTM.

    Returns (cs_prev_grad, dicfo `[batch, 4 * cells]`, wci_grad, wcf_grad, wco_grad). dicfo are the
    gradients with respect to the gates i, c, f and o before their activation.
    """
    peepholes = (wci, wcf, wco)
    check_lstm(x, 2, cs_prev, h_prev, w, peepholes, b, use_peephole)
    gates = (i, cs, f, o, ci, co, cs_grad, h_grad)
    _check_same_shape(gates, cs_prev.shape)
    wide = tuple(widen(each) for each in gates)
    weights = tuple(widen(each) for each in peepholes) if use_peephole else None
    previous = widen(cs_prev)
    cs_prev_grad, parts = _step_grad(previous, wide, weights)
    outputs = (
        cs_prev_grad,
        np.concatenate([parts[gate] for gate in "icfo"], axis=1),
        *_peephole_grads(parts, previous, wide[1], weights),
    )
    return tuple(each.astype(x.dtype, copy=False) for each in outputs)


def _step_grad(
    cs_prev: np.ndarray, gates: Arrays, peepholes: Arrays | None
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the gradients with respect to `cs_prev` and the gates of one time step.

    The gates are i, c, f and o before their activation.
    """
    i, _, f, o, ci, co, cs_grad, h_grad = gates
    d_o = o * (1 - o) * h_grad * co
    d_cs = (1 - co * co) * h_grad * o + cs_grad
    if peepholes is not None:
        d_cs = d_cs + d_o * peepholes[2]
    d_ci = (1 - ci * ci) * d_cs * i
    d_f = f * (1 - f) * d_cs * cs_prev
    d_i = i * (1 - i) * d_cs * ci
    cs_prev_grad = d_cs * f
    if peepholes is not None:
        cs_prev_grad = cs_prev_grad + d_i * peepholes[0] + d_f * peepholes[1]
    return cs_prev_grad, {"i": d_i, "c": d_ci, "f": d_f, "o": d_o}


def _peephole_grads(
    parts: dict[str, np.ndarray], cs_prev: np.ndarray, cs: np.ndarray, peepholes: Arrays | None
) -> Arrays:
    if peepholes is None:
        return (np.zeros(cs.shape[1], cs.dtype),) * 3
    return (
        (parts["i"] * cs_prev).sum(axis=0),
        (parts["f"] * cs_prev).sum(axis=0),
        (parts["o"] * cs).sum(axis=0),
    )


def _check_same_shape(tensors: Arrays, shape: tuple[int, ...]) -> None:
    for tensor in tensors:
        if tensor.shape != shape:
            raise InvalidArgumentError(
                f"Gates and gradients must have shape {shape_text(shape)}, "
                f"got {shape_text(tensor.shape)}"
            )


def block_lstm_grad(
    seq_len_max: np.ndarray,
    x: np.ndarray,
    cs_prev: np.ndarray,
    h_prev: np.ndarray,
    w: np.ndarray,
    wci: np.ndarray,
    wcf: np.ndarray,
    wco: np.ndarray,
    b: np.ndarray,
    i: np.ndarray,
    cs: np.ndarray,
    f: np.ndarray,
    o: np.ndarray,
    ci: np.ndarray,
    co: np.ndarray,
    h: np.ndarray,
    cs_grad: np.ndarray,
    h_grad: np.ndarray,
    *,
    use_peephole: bool,
) -> Arrays:
    """BlockLSTMGrad: return the gradients for x, cs_prev, h_prev, w, wci, wcf, wco and b.

    `x`, the gates and `h` are `[time, batch, …]`. The order of the gates in `w` is i, c, f, o.
    """
    gates = (i, cs, f, o, ci, co, cs_grad, h_grad)
    state = (x, cs_prev, h_prev, w, wci, wcf, wco, b)
    return _sequence_grad(seq_len_max, state, gates, h, use_peephole, "icfo")


def block_lstm_grad_v2(
    seq_len_max: np.ndarray,
    x: np.ndarray,
    cs_prev: np.ndarray,
    h_prev: np.ndarray,
    w: np.ndarray,
    wci: np.ndarray,
    wcf: np.ndarray,
    wco: np.ndarray,
    b: np.ndarray,
    i: np.ndarray,
    cs: np.ndarray,
    f: np.ndarray,
    o: np.ndarray,
    ci: np.ndarray,
    co: np.ndarray,
    h: np.ndarray,
    cs_grad: np.ndarray,
    h_grad: np.ndarray,
    *,
    use_peephole: bool,
) -> Arrays:
    """BlockLSTMGradV2: compute BlockLSTMGrad; the order of the gates in `w` is i, f, c, o."""
    gates = (i, cs, f, o, ci, co, cs_grad, h_grad)
    state = (x, cs_prev, h_prev, w, wci, wcf, wco, b)
    return _sequence_grad(seq_len_max, state, gates, h, use_peephole, "ifco")


def _sequence_grad(
    seq_len_max: np.ndarray,
    state: Arrays,
    gates: Arrays,
    h: np.ndarray,
    use_peephole: bool,
    order: str,
) -> Arrays:
    x, cs_prev, h_prev, w, wci, wcf, wco, b = state
    check_lstm(x, 3, cs_prev, h_prev, w, (wci, wcf, wco), b, use_peephole)
    _check_same_shape((*gates, h), (*x.shape[:2], cs_prev.shape[1]))
    if np.ndim(seq_len_max) or not 0 <= int(seq_len_max) <= x.shape[0]:
        raise InvalidArgumentError(f"seq_len_max must be a scalar in [0, {x.shape[0]}]")
    wide_x, first_cs, first_h, weights, bias = (widen(e) for e in (x, cs_prev, h_prev, w, b))
    peepholes = tuple(widen(each) for each in (wci, wcf, wco)) if use_peephole else None
    wide_gates, wide_h = tuple(widen(each) for each in gates), widen(h)
    x_grad, w_grad, b_grad = (np.zeros_like(each) for each in (wide_x, weights, bias))
    peephole_grads = [np.zeros(cs_prev.shape[1], bias.dtype) for _ in range(3)]
    cs_back, h_back = np.zeros_like(first_cs), np.zeros_like(first_h)
    for step in reversed(range(int(seq_len_max))):
        check_task()
        before_cs = wide_gates[1][step - 1] if step else first_cs
        before_h = wide_h[step - 1] if step else first_h
        *now, cs_grad, h_grad = (each[step] for each in wide_gates)
        now_gates = (*now, cs_grad + cs_back, h_grad + h_back)
        cs_back, parts = _step_grad(before_cs, now_gates, peepholes)
        d_gates = np.concatenate([parts[gate] for gate in order], axis=1)
        xh_grad = d_gates @ weights.T
        x_grad[step], h_back = xh_grad[:, : x.shape[2]], xh_grad[:, x.shape[2] :]
        w_grad += np.concatenate([wide_x[step], before_h], axis=1).T @ d_gates
        b_grad += d_gates.sum(axis=0)
        grads = _peephole_grads(parts, before_cs, now[1], peepholes)
        peephole_grads = [total + part for total, part in zip(peephole_grads, grads, strict=True)]
    outputs = (x_grad, cs_back, h_back, w_grad, *peephole_grads, b_grad)
    return tuple(each.astype(x.dtype, copy=False) for each in outputs)


def gru_block_cell_grad(
    x: np.ndarray,
    h_prev: np.ndarray,
    w_ru: np.ndarray,
    w_c: np.ndarray,
    b_ru: np.ndarray,
    b_c: np.ndarray,
    r: np.ndarray,
    u: np.ndarray,
    c: np.ndarray,
    d_h: np.ndarray,
) -> Arrays:
    """GRUBlockCellGrad: return the gradients of one time step of a GRU.

    Returns (d_x, d_h_prev, d_c_bar, d_r_bar_u_bar); `bar` means a gate before its activation.
    """
    check_gru(x, h_prev, w_ru, w_c, b_ru, b_c)
    _check_same_shape((r, u, c, d_h), h_prev.shape)
    inputs = x.shape[1]
    d_c_bar = d_h * (1 - u) * (1 - c * c)
    d_u_bar = d_h * (h_prev - c) * u * (1 - u)
    from_c = d_c_bar @ w_c.T
    d_hr = from_c[:, inputs:]
    d_r_bar = d_hr * h_prev * r * (1 - r)
    d_r_bar_u_bar = np.concatenate([d_r_bar, d_u_bar], axis=1)
    from_ru = d_r_bar_u_bar @ w_ru.T
    d_x = from_c[:, :inputs] + from_ru[:, :inputs]
    return d_x, d_hr * r + from_ru[:, inputs:] + d_h * u, d_c_bar, d_r_bar_u_bar


_HALF_AND_FLOAT = {"T": (DataType.HALF, DataType.FLOAT)}

KERNELS = (
    KernelDef("BlockLSTMGrad", block_lstm_grad, _HALF_AND_FLOAT, expensive=True),
    KernelDef("BlockLSTMGradV2", block_lstm_grad_v2, _HALF_AND_FLOAT, expensive=True),
    KernelDef("GRUBlockCellGrad", gru_block_cell_grad),
    KernelDef("LSTMBlockCellGrad", lstm_block_cell_grad, _HALF_AND_FLOAT),
)
