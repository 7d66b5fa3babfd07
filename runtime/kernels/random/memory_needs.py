"""What the kernels of this room allocate.

`MEMORY_NEEDS` has the bound of each op that may need more than a small multiple of its inputs (see
`KernelDef.memory`); for all others `INPUT_MULTIPLES` has that multiple.
"""

from __future__ import annotations

from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import MemoryNeed
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import (
    NUMBER,
    PHILOX_WORD,
    elements,
    itemsize,
    number,
    numbers_in,
    shape_of,
    size_of,
    volume,
)

V = TensorValue

# Bytes for each number drawn, apart from the words of the stream: temporaries in float64.
_NORMAL = 64
_TRUNCATED = 160
_REJECTION = 640  # rejection samplers keep a block of the stream and a dozen arrays an output
_INVERSE = 400  # truncated normal distributions of given limits


def _words(dtype: DataType | int) -> int:
    """Return how many words of 32 bits a number is made of."""
    width = dtype if isinstance(dtype, int) else dtype.numpy.itemsize
    return 2 if width == 8 else 1


def _uniform(shape: V, *others: V, dtype: DataType) -> int:
    return volume(numbers_in(shape)) * (_words(dtype) * PHILOX_WORD + 24)


def _normal(shape: V, *others: V, dtype: DataType) -> int:
    return volume(numbers_in(shape)) * (_words(dtype) * PHILOX_WORD + _NORMAL)


def _truncated(shape: V, *others: V, dtype: DataType) -> int:
    return volume(numbers_in(shape)) * (2 * _words(dtype) * PHILOX_WORD + _TRUNCATED)


def _stateful(need: MemoryNeed) -> MemoryNeed:
    """Return the bound of a kernel whose shape follows the generator's handle and algorithm."""

    def stateful(handle: V, algorithm: V, shape: V, *, dtype: DataType) -> int:
        return need(shape, dtype=dtype)

    return stateful


def _integers(shape: V, minval: V) -> int:
    width = itemsize(minval)
    return volume(numbers_in(shape)) * (_words(width) * PHILOX_WORD + 4 * width)


def _uniform_int(shape: V, minval: V, maxval: V) -> int:
    return _integers(shape, minval)


def _stateful_uniform_int(handle: V, algorithm: V, shape: V, minval: V, maxval: V) -> int:
    return _integers(shape, minval)


def _stateless_uniform_int(shape: V, seed: V, minval: V, maxval: V) -> int:
    return _integers(shape, minval)


def _stateless_uniform_int_v2(
    shape: V, key: V, counter: V, alg: V, minval: V, maxval: V
) -> int:  # fmt: skip
    return _integers(shape, minval)


def _ints(shape: V, *, dtype: DataType) -> int:
    return 2 * volume(numbers_in(shape)) * dtype.numpy.itemsize


def _samples(logits: V, num_samples: V, *seed: V) -> int:
    batch = (shape_of(logits) or (0,))[0]
    drawn = batch * max(number(num_samples), 0)
    return drawn * (2 * PHILOX_WORD + 48) + 6 * 8 * elements(logits)


def _rejected_of_each(shape: V, parameter: V) -> int:
    """Return the bound of a sampler that draws `shape` numbers for each parameter."""
    return volume(numbers_in(shape)) * elements(parameter) * _REJECTION + 3 * 8 * elements(
        parameter
    )


def _rejected(shape: V, *others: V) -> int:
    return volume(numbers_in(shape)) * _REJECTION + 6 * 8 * sum(map(elements, others))


def _stateful_binomial(handle: V, algorithm: V, shape: V, counts: V, probs: V) -> int:
    return _rejected(shape, counts, probs)


def _limited(shape: V, *others: V) -> int:
    return volume(numbers_in(shape)) * _INVERSE + 4 * 8 * sum(map(elements, others))


def _shuffled(value: V, *others: V) -> int:
    rows = (shape_of(value) or (0,))[0]
    return rows * (PHILOX_WORD + 3 * NUMBER) + 2 * size_of(value)


def _index_shuffle(index: V, seed: V, max_index: V, *, rounds: int) -> int:
    table = (1 << 16) * (10 * 8 + NUMBER)  # permutations of few numbers are tabulated
    count = max(elements(index), elements(max_index), elements(seed) // 3)
    return table + rounds * NUMBER * 2 + count * 1000


def _sobol(dim: V, num_results: V, skip: V, *, dtype: DataType) -> int:
    directions = 1 << 26  # those of all dimensions, at the first call
    points, count = number(dim) * number(num_results), number(num_results)
    if max(points, count) >= (1 << 31) - 1:
        return directions  # the kernel refuses as many
    return directions + max(points, 0) * (8 + 3 * dtype.numpy.itemsize) + max(count, 0) * 64


MEMORY_NEEDS: dict[str, MemoryNeed] = {
    "Multinomial": _samples,
    "StatelessMultinomial": _samples,
    "NonDeterministicInts": _ints,
    **dict.fromkeys(("RandomGamma", "RandomPoisson", "RandomPoissonV2"), _rejected_of_each),
    **dict.fromkeys(
        (
            "StatelessRandomBinomial", "StatelessRandomGammaV2", "StatelessRandomGammaV3",
            "StatelessRandomPoisson",
        ),
        _rejected,
    ),
    "StatefulRandomBinomial": _stateful_binomial,
    **dict.fromkeys(("RandomShuffle", "StatelessShuffle"), _shuffled),
    **dict.fromkeys(
        ("RandomStandardNormal", "StatelessRandomNormal", "StatelessRandomNormalV2"), _normal
    ),
    **dict.fromkeys(
        (
            "RandomUniform", "StatelessRandomUniform", "StatelessRandomUniformV2",
            "StatelessRandomUniformFullInt", "StatelessRandomUniformFullIntV2",
        ),
        _uniform,
    ),
    **dict.fromkeys(
        ("TruncatedNormal", "StatelessTruncatedNormal", "StatelessTruncatedNormalV2"), _truncated
    ),
    "StatefulStandardNormalV2": _stateful(_normal),
    "StatefulTruncatedNormal": _stateful(_truncated),
    "StatefulUniform": _stateful(_uniform),
    "StatefulUniformFullInt": _stateful(_uniform),
    "RandomUniformInt": _uniform_int,
    "StatefulUniformInt": _stateful_uniform_int,
    "StatelessRandomUniformInt": _stateless_uniform_int,
    "StatelessRandomUniformIntV2": _stateless_uniform_int_v2,
    "ParameterizedTruncatedNormal": _limited,
    "StatelessParameterizedTruncatedNormal": _limited,
    "RandomIndexShuffle": _index_shuffle,
    "SobolSample": _sobol,
}  # fmt: skip

INPUT_MULTIPLES: dict[str, int] = dict.fromkeys(
    (
        "RngReadAndSkip", "RngSkip", "StatelessRandomGetAlg", "StatelessRandomGetKeyCounter",
        "StatelessRandomGetKeyCounterAlg",
    ),
    1,
)  # fmt: skip
