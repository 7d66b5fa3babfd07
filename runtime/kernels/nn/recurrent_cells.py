"""Fused recurrent cells: LSTM and GRU, over one time step or a whole sequence.

TF: tensorflow/core/kernels/rnn/lstm_ops.cc, gru_ops.cc
"""

from __future__ import annotations

import dataclasses

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.math.accumulation import accumulation_dtype

Outputs = tuple[np.ndarray, ...]
PEEPHOLES = ("wci", "wcf", "wco")


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Compute the logistic function of `x` by tanh, which does not overflow."""
    half = x.dtype.type(0.5)
    return np.tanh(x * half) * half + half


@dataclasses.dataclass(frozen=True, slots=True)
class LstmCell:
    """Weights and attributes of an LSTM cell; `order` is the order of the gates in `w` and `b`."""

    w: np.ndarray  # [inputs + cells, 4 * cells]
    b: np.ndarray  # [4 * cells]
    # The weights [cells] of the cell state in the gates i, f and o.
    peepholes: tuple[np.ndarray, np.ndarray, np.ndarray] | None
    forget_bias: float
    cell_clip: float
    order: str  # i: input gate, c: cell input, f: forget gate, o: output gate

    def step(self, gates: np.ndarray, cs_prev: np.ndarray) -> Outputs:
        """Compute one time step; return (i, cs, f, o, ci, co, h), each `[batch, cells]`.

        `gates` `[batch, 4 * cells]` are the weighted sums of the inputs, before activation.
        """
        parts = dict(zip(self.order, np.split(gates, 4, axis=1), strict=True))
        i, f, o = parts["i"], parts["f"] + gates.dtype.type(self.forget_bias), parts["o"]
        if self.peepholes is not None:
            i = i + cs_prev * self.peepholes[0]
            f = f + cs_prev * self.peepholes[1]
        i, f, ci = sigmoid(i), sigmoid(f), np.tanh(parts["c"])
        cs = ci * i + cs_prev * f
        if self.cell_clip > 0:
            cs = np.clip(cs, -self.cell_clip, self.cell_clip)
        if self.peepholes is not None:
            o = o + cs * self.peepholes[2]
        o, co = sigmoid(o), np.tanh(cs)
        return i, cs, f, o, ci, co, co * o

    def sequence(self, steps: int, x: np.ndarray, cs: np.ndarray, h: np.ndarray) -> Outputs:
        """Compute the first `steps` time steps of `x` `[time, batch, inputs]`.

        Returns the results of `step` as `[time, batch, cells]`; after `steps` they are zeros.
        """
        inputs, cells = x.shape[2], cs.shape[1]
        outputs = [np.zeros((*x.shape[:2], cells), x.dtype) for _ in range(7)]
        from_input = x[:steps] @ self.w[:inputs] + self.b  # one product for all time steps
        recurrent = self.w[inputs:]
        for step in range(steps):
            check_task()
            values = self.step(from_input[step] + h @ recurrent, cs)
            for output, value in zip(outputs, values, strict=True):
                output[step] = value
            cs, h = values[1], values[6]
        return tuple(outputs)


def lstm_block_cell(
    x: np.ndarray,
    cs_prev: np.ndarray,
    h_prev: np.ndarray,
    w: np.ndarray,
    wci: np.ndarray,
    wcf: np.ndarray,
    wco: np.ndarray,
    b: np.ndarray,
    *,
    forget_bias: float,
    cell_clip: float,
    use_peephole: bool,
) -> Outputs:
    """LSTMBlockCell: compute one time step of an LSTM; `x` is `[batch, inputs]`.

    Returns (i, cs, f, o, ci, co, h), each `[batch, cells]`.
    """
    check_lstm(x, 2, cs_prev, h_prev, w, (wci, wcf, wco), b, use_peephole)
    if not cs_prev.size:
        rows, cells = cs_prev.shape
        raise InvalidArgumentError(f"cs_prev_tensor is empty, has shape: ({rows},{cells}).")
    cell = _lstm_cell(w, (wci, wcf, wco), b, use_peephole, forget_bias, cell_clip, "icfo")
    one_step = (each.astype(cell.w.dtype, copy=False) for each in (x[None], cs_prev, h_prev))
    outputs = cell.sequence(1, *one_step)
    return tuple(each[0].astype(x.dtype, copy=False) for each in outputs)


def _lstm_cell(
    w: np.ndarray,
    peepholes: tuple[np.ndarray, np.ndarray, np.ndarray],
    b: np.ndarray,
    use_peephole: bool,
    forget_bias: float,
    cell_clip: float,
    order: str,
) -> LstmCell:
    dtype = accumulation_dtype(w.dtype)
    wci, wcf, wco = (each.astype(dtype, copy=False) for each in peepholes)
    return LstmCell(
        w.astype(dtype, copy=False),
        b.astype(dtype, copy=False),
        (wci, wcf, wco) if use_peephole else None,
        forget_bias,
        cell_clip,
        order,
    )


def check_lstm(
    x: np.ndarray,
    rank: int,
    cs_prev: np.ndarray,
    h_prev: np.ndarray,
    w: np.ndarray,
    peepholes: tuple[np.ndarray, ...],
    b: np.ndarray,
    use_peephole: bool,
) -> None:
    """Raise InvalidArgumentError unless the shapes of an LSTM's inputs fit together.

    `rank` is the required rank of `x`.
    """
    _check_ranks(
        ("x", x, rank), ("cs_prev", cs_prev, 2), ("h_prev", h_prev, 2), ("w", w, 2),
        *((name, each, 1) for name, each in zip(PEEPHOLES, peepholes, strict=True)), ("b", b, 1),
    )  # fmt: skip
    batch, inputs, cells = x.shape[-2], x.shape[-1], cs_prev.shape[1]
    _check_sizes(
        ("cs_prev.dims(0) != batch_size", cs_prev.shape[0], batch),
        ("h_prev.dims(0) != batch_size", h_prev.shape[0], batch),
        ("h_prev.dims(1) != cell_size", h_prev.shape[1], cells),
        ("w.dim_size(0) != input_size + cell_size", w.shape[0], inputs + cells),
        ("w.dim_size(1) != cell_size * 4", w.shape[1], cells * 4),
        ("b.dim_size(0) != cell_size * 4", b.shape[0], cells * 4),
    )
    if use_peephole:
        for name, weights in zip(PEEPHOLES, peepholes, strict=True):
            if weights.shape != (cells,):
                raise InvalidArgumentError(
                    f"{name} must have shape {shape_text((cells,))}, "
                    f"got {shape_text(weights.shape)}"
                )


def _check_block_lstm(
    x: np.ndarray,
    cs_prev: np.ndarray,
    h_prev: np.ndarray,
    w: np.ndarray,
    peepholes: tuple[np.ndarray, ...],
    b: np.ndarray,
) -> None:
    """Check the inputs by `check_lstm`, and the shapes of `peepholes` even if they are not used."""
    for name, weights in zip(PEEPHOLES, peepholes, strict=True):
        if weights.ndim != 1:
            raise InvalidArgumentError(f"{name} must be 1D")
    check_lstm(x, 3, cs_prev, h_prev, w, peepholes, b, use_peephole=False)
    _check_sizes(
        *(
            (f"{name}.dim_size(0) != cell_size", len(weights), cs_prev.shape[1])
            for name, weights in zip(PEEPHOLES, peepholes, strict=True)
        )
    )


def _check_ranks(*checks: tuple[str, np.ndarray, int]) -> None:
    for name, tensor, wanted in checks:
        if tensor.ndim != wanted:
            raise InvalidArgumentError(
                f"{name} must be rank {wanted} but is rank {tensor.ndim}: "
                f"{shape_text(tensor.shape)}"
            )


def _check_sizes(*checks: tuple[str, int, int]) -> None:
    for text, got, wanted in checks:
        if got != wanted:
            raise InvalidArgumentError(f"{text}: {got} vs. {wanted}")


def block_lstm(
    seq_len_max: np.ndarray,
    x: np.ndarray,
    cs_prev: np.ndarray,
    h_prev: np.ndarray,
    w: np.ndarray,
    wci: np.ndarray,
    wcf: np.ndarray,
    wco: np.ndarray,
    b: np.ndarray,
    *,
    forget_bias: float,
    cell_clip: float,
    use_peephole: bool,
) -> Outputs:
    """BlockLSTM: compute an LSTM over the sequence `x` `[time, batch, inputs]`.

    Returns (i, cs, f, o, ci, co, h), each `[time, batch, cells]`.
    """
    _check_block_lstm(x, cs_prev, h_prev, w, (wci, wcf, wco), b)
    cell = _lstm_cell(w, (wci, wcf, wco), b, use_peephole, forget_bias, cell_clip, "icfo")
    return _run_sequence(cell, seq_len_max, x, cs_prev, h_prev)


def block_lstm_v2(
    seq_len_max: np.ndarray,
    x: np.ndarray,
    cs_prev: np.ndarray,
    h_prev: np.ndarray,
    w: np.ndarray,
    wci: np.ndarray,
    wcf: np.ndarray,
    wco: np.ndarray,
    b: np.ndarray,
    *,
    cell_clip: float,
    use_peephole: bool,
) -> Outputs:
    """BlockLSTMV2: compute BlockLSTM with a forget bias of 0.

    The order of the gates in `w` and `b` is i, f, c, o.
    """
    _check_block_lstm(x, cs_prev, h_prev, w, (wci, wcf, wco), b)
    cell = _lstm_cell(w, (wci, wcf, wco), b, use_peephole, 0.0, cell_clip, "ifco")
    return _run_sequence(cell, seq_len_max, x, cs_prev, h_prev)


def _run_sequence(
    cell: LstmCell, seq_len_max: np.ndarray, x: np.ndarray, cs_prev: np.ndarray, h_prev: np.ndarray
) -> Outputs:
    if np.ndim(seq_len_max):
        raise InvalidArgumentError(
            f"seq_len_max_tensor must be rank 0 but is rank {np.ndim(seq_len_max)}"
        )
    steps = int(seq_len_max)
    if not 0 <= steps <= x.shape[0]:
        raise InvalidArgumentError(f"seq_len_max must be in [0, {x.shape[0]}], got {steps}")
    wide = (each.astype(cell.w.dtype, copy=False) for each in (x, cs_prev, h_prev))
    outputs = cell.sequence(steps, *wide)
    return tuple(each.astype(x.dtype, copy=False) for each in outputs)


def gru_block_cell(
    x: np.ndarray,
    h_prev: np.ndarray,
    w_ru: np.ndarray,
    w_c: np.ndarray,
    b_ru: np.ndarray,
    b_c: np.ndarray,
) -> Outputs:
    """GRUBlockCell: compute one time step of a GRU; `x` is `[batch, inputs]`.

    Returns (r, u, c, h), each `[batch, cells]`.
    """
    check_gru(x, h_prev, w_ru, w_c, b_ru, b_c)
    inputs = x.shape[1]
    r, u = np.split(sigmoid(x @ w_ru[:inputs] + h_prev @ w_ru[inputs:] + b_ru), 2, axis=1)
    c = np.tanh(x @ w_c[:inputs] + (r * h_prev) @ w_c[inputs:] + b_c)
    return np.ascontiguousarray(r), np.ascontiguousarray(u), c, u * h_prev + (1 - u) * c


def check_gru(
    x: np.ndarray,
    h_prev: np.ndarray,
    w_ru: np.ndarray,
    w_c: np.ndarray,
    b_ru: np.ndarray,
    b_c: np.ndarray,
) -> None:
    """Raise InvalidArgumentError unless the shapes of a GRU cell's inputs fit together."""
    _check_ranks(
        ("x", x, 2),
        ("h_prev", h_prev, 2),
        ("w_ru", w_ru, 2),
        ("w_c", w_c, 2),
        ("b_ru", b_ru, 1),
        ("b_c", b_c, 1),
    )
    (batch, inputs), cells = x.shape, h_prev.shape[1]
    _check_sizes(
        ("h_prev.dims(0) != batch_size", h_prev.shape[0], batch),
        ("w_ru.dim_size(0) != input_size + cell_size", w_ru.shape[0], inputs + cells),
        ("w_ru.dim_size(1) != cell_size * 2", w_ru.shape[1], cells * 2),
        ("w_c.dim_size(0) != input_size + cell_size", w_c.shape[0], inputs + cells),
        ("w_c.dim_size(1) != cell_size", w_c.shape[1], cells),
        ("b_ru.dim_size(0) != cell_size * 2", b_ru.shape[0], cells * 2),
        ("b_c.dim_size(0) != cell_size", b_c.shape[0], cells),
    )


_HALF_AND_FLOAT = {"T": (DataType.HALF, DataType.FLOAT)}

KERNELS = (
    KernelDef("BlockLSTM", block_lstm, _HALF_AND_FLOAT, expensive=True),
    KernelDef("BlockLSTMV2", block_lstm_v2, _HALF_AND_FLOAT, expensive=True),
    KernelDef("GRUBlockCell", gru_block_cell),
    KernelDef("LSTMBlockCell", lstm_block_cell, _HALF_AND_FLOAT),
)
