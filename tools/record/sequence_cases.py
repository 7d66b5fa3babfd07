"""Records what TF Text's ops of sequences and trees answer to random scores.

Runs where tensorflow_text is installed; `tests/extras/text/test_random_cases.py` compares the
answers of ConstrainedSequence and MaxSpanningTree:

    python tools/record/sequence_cases.py [--cases N] [--seed S] [--output FILE]

N is the number of cases of each op. About one in six is refused. Left out are lengths below 0, for
which TensorFlow's process ends, as it does for products of scores without states, and denormal
numbers, which it flushes to zero on some threads (docs/kernel_differences.md).
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Iterator

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import numpy as np
from tensorflow_text.python.ops import mst_ops, viterbi_constrained_sequence_op

from tools.record.text_cases import Case, called, write_cases

OUTPUT = pathlib.Path(__file__).parents[2] / "tests/extras/text/sequence_cases.json.gz"
# of products and of sums: products of scores that are far apart would be denormal
GREATEST = 1e6, 3e38
Random = np.random.Generator


def chance(source: Random, probability: float) -> bool:
    return bool(source.random() < probability)


def scores(
    source: Random, shape: tuple[int, ...], dtype: type = np.float32, greatest: float = 3e38
) -> np.ndarray:
    """Return numbers of one of several kinds: equal ones, any, great ones, some not finite."""
    kind = source.integers(6)
    if kind < 2:
        found = source.integers(-2 if kind else 0, 4, shape).astype(dtype)
    elif np.dtype(dtype).kind == "i":
        found = source.integers(*((-(2**31), 2**31) if kind == 2 else (-1000, 1000)), shape)
    else:
        found = source.standard_normal(shape) * (greatest / 4 if kind == 2 else 1)
        if kind == 3:
            found = np.abs(found) % 1
        if kind == 4:
            odd = source.choice([np.inf, -np.inf, np.nan, 0.0, -0.0, greatest, -greatest], shape)
            found = np.where(source.random(shape) < 0.4, odd, found)
    with np.errstate(all="ignore"):
        return found.astype(dtype)


def matrix(source: Random, states: int, ends: bool, kind: str) -> np.ndarray:
    """Return allowed transitions, or weights; empty, or of a wrong size now and then."""
    size = states + ends
    shape = (size, size)
    if chance(source, 0.3):
        shape = [(0,), (0, 0), (2, 0, 3)][source.integers(3)]
    elif chance(source, 0.04):
        shape = [(size + 1, size), (size, size + 1), (size * size,), (1, size, size)][
            source.integers(4)
        ]
    if kind == "allowed":
        return source.random(shape) < source.choice([0.3, 0.6, 0.9, 1.0])
    found = scores(source, shape, greatest=GREATEST[kind == "sums"])
    if kind == "products" and not chance(source, 0.05):
        found = np.nan_to_num(np.abs(found), nan=0.5, posinf=GREATEST[0])
    return found


def sequences(source: Random) -> Case:
    batch, steps = source.integers(0, 5), source.integers(0, 7)
    ends, log = chance(source, 0.5), chance(source, 0.5)
    states = int(source.integers(0 if log else 1, 6))
    shape: tuple[int, ...] = (batch, steps, states)
    if chance(source, 0.1):
        batch, shape = 1, (steps, states)
    elif chance(source, 0.02):
        shape = [(steps,), (batch, 1, steps, states)][source.integers(2)]
    lengths = source.integers(0, steps + 1, batch)
    if chance(source, 0.04) and batch:
        lengths[source.integers(batch)] += steps
    if chance(source, 0.03):
        lengths = np.append(lengths, 0)
    return called(
        "ConstrainedSequence",
        viterbi_constrained_sequence_op.gen_constrained_sequence_op.constrained_sequence,
        scores(source, shape, greatest=GREATEST[log]),
        lengths.astype(source.choice([np.int32, np.int64])),
        matrix(source, states, ends, "allowed"),
        matrix(source, states, ends, "sums" if log else "products"),
        Tsplits=str(source.choice(["int32", "int64"])),
        use_viterbi=chance(source, 0.6),
        use_log_space=log,
        use_start_and_end_states=ends,
    )


def trees(source: Random) -> Case:
    batch = int(source.integers(0, 4))
    size = int(source.choice([1, 2, 3, 4, 5, 6, 8, 12, 20]))
    shape: tuple[int, ...] = (batch, size, size)
    if chance(source, 0.03):
        shape = [(batch, size, size + 1), (batch, size), (batch + 1, size, size)][
            source.integers(3)
        ]
    dtype = [np.int32, np.float32, np.float64][source.integers(3)]
    found = scores(source, shape, dtype)
    if dtype is not np.int32 and chance(source, 0.5):
        missing = source.random(shape) < source.choice([0.2, 0.5, 0.8])
        found[missing] = source.choice([np.inf, -np.inf, np.nan])
    nodes = source.integers(1, size + 1, (batch, 1) if chance(source, 0.02) else batch)
    if chance(source, 0.04) and batch:
        nodes[source.integers(batch)] = source.choice([0, -1, size + 1])
    return called(
        "MaxSpanningTree",
        mst_ops.max_spanning_tree,
        nodes.astype(np.int32),
        found,
        forest=chance(source, 0.5),
    )


def cases(source: Random, count: int) -> Iterator[Case]:
    for _ in range(count):
        yield sequences(source)
        yield trees(source)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=220)
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--output", type=pathlib.Path, default=OUTPUT)
    chosen = parser.parse_args()
    found = list(cases(np.random.default_rng(chosen.seed), chosen.cases))
    print(sum("error" in case for case in found), "are refused")
    write_cases(found, chosen.output)


if __name__ == "__main__":
    main()
