"""Kernels that a small graph can keep busy for long, and what bounds each.

The kernels were found by a search: every op of the conformance cases with one attribute or input
replaced by an extreme value, in a process that was ended after 2 s. There are three bounds:

* IN_BLOCKS: the kernel looks at whether its step has ended, so that its thread is soon free.
* BEFORE: the work is refused before it starts.
* NATIVE: single native calls, each on arrays of at most the tensor limit. They can't be
  interrupted; the pool replaces their thread (`foundation/thread_pool.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import protos as pb
from runtime.api import OpError, SessionOptions, new_session
from runtime.foundation import running_task
from runtime.foundation.errors import CancelledError, Code
from runtime.foundation.running_task import set_running_task
from runtime.framework.allocation import set_tensor_limit, tensor_limit
from runtime.kernels.lazy_registry import op_index
from tests.conformance.case import Case, case

F32, I32, I64 = np.float32, np.int32, np.int64
IMAGE = np.zeros((1, 4, 4, 1), F32)
SEED = I32([1, 2])
WORDS = np.array([b"a"] * 40, object)
MANY = 1 << 12

# op → a step whose loop looks at the task
IN_BLOCKS: dict[str, Case] = {
    "RandomIndexShuffle": case(
        "RandomIndexShuffle", I32(1), I32([1, 2, 3]), I32(70_000), rounds=MANY
    ),
    "TruncatedNormal": case("TruncatedNormal", I32([MANY]), dtype=F32),
    "StatelessTruncatedNormal": case("StatelessTruncatedNormal", I32([MANY]), SEED),
    "RandomGamma": case("RandomGamma", I32([MANY]), F32([2])),
    "RandomPoissonV2": case("RandomPoissonV2", I32([MANY]), F32([2])),
    "StatelessRandomPoisson": case(
        "StatelessRandomPoisson", I32([MANY, 1]), SEED, F32([2]), dtype=F32
    ),
    "StatelessRandomGammaV2": case("StatelessRandomGammaV2", I32([MANY, 1]), SEED, F32([2])),
    "StatelessRandomBinomial": case(
        "StatelessRandomBinomial", I32([MANY, 1]), SEED, np.float64([50]), np.float64([0.5])
    ),
    "EditDistance": case(
        "EditDistance",
        I64([[0, i] for i in range(40)]), np.arange(40), I64([1, 40]),
        I64([[0, i] for i in range(40)]), np.arange(40), I64([1, 40]),
    ),
    "CTCBeamSearchDecoder": case(
        "CTCBeamSearchDecoder", np.zeros((3, 1, 30), F32), I32([3]), beam_width=MANY, top_paths=1
    ),
    "Conv2DBackpropFilter": case(
        "Conv2DBackpropFilter", IMAGE, I32([2, 2, 1, 1]), IMAGE, strides=[1, 1, 1, 1],
        padding="SAME",
    ),
    "KmeansPlusPlusInitialization": case(
        "KmeansPlusPlusInitialization", np.zeros((3, 2), F32), I64(2), I64(1), I64(MANY)
    ),
    "SampleDistortedBoundingBoxV2": case(
        "SampleDistortedBoundingBoxV2", I32([10, 10, 3]), F32([[[0, 0, 1, 1]]]), F32(1),
        max_attempts=MANY, area_range=[0.05, 0.1],
    ),
    "UniformCandidateSampler": case(
        "UniformCandidateSampler", I64([[1]]), num_true=1, num_sampled=MANY, unique=True,
        range_max=MANY,
    ),
    "TridiagonalSolve": case("TridiagonalSolve", np.ones((3, 40), F32), np.ones((40, 1), F32)),
    "NonMaxSuppressionV3": case(
        "NonMaxSuppressionV3", np.zeros((40, 4), F32), np.ones(40, F32), I32(40), F32(0.5), F32(0)
    ),
    "ResizeBicubic": case("ResizeBicubic", IMAGE, I32([40, 40])),
    "DecodeCSV": case("DecodeCSV", WORDS, [np.array(["x"])]),
    "StringLower": case("StringLower", np.array([b"A"] * (2 * running_task.BLOCK), object)),
    "SerializeManySparse": case(
        "SerializeManySparse", np.zeros((0, 2), I64), np.zeros(0, F32), I64([40, 1])
    ),
}  # fmt: skip

# op → a step that is refused, and the code of the error
BEFORE: dict[str, tuple[Case, Code]] = {
    "RandomIndexShuffle": (
        case("RandomIndexShuffle", I32(1), I32([1, 2, 3]), I32(70_000), rounds=1 << 62),
        Code.RESOURCE_EXHAUSTED,
    ),
    "KmeansPlusPlusInitialization": (
        case("KmeansPlusPlusInitialization", np.zeros((3, 2), F32), I64(2), I64(1), I64(1 << 40)),
        Code.RESOURCE_EXHAUSTED,
    ),
    "Fill": (case("Fill", I64([1 << 40]), F32(0)), Code.RESOURCE_EXHAUSTED),
    "Range": (case("Range", I64(0), I64(1 << 40), I64(1)), Code.RESOURCE_EXHAUSTED),
    "TruncatedNormal": (
        case("TruncatedNormal", I64([1 << 40]), dtype=F32), Code.RESOURCE_EXHAUSTED,
    ),
    "Conv2D": (
        case("Conv2D", IMAGE, np.zeros((2, 2, 1, 1), F32), strides=[1, 1, 1, 1], padding="SAME",
             dilations=[1, 1 << 20, 1 << 20, 1]),
        Code.RESOURCE_EXHAUSTED,
    ),
    "Mfcc": (
        case("Mfcc", np.zeros((1, 1, 40), F32), I32(8000), filterbank_channel_count=1 << 30),
        Code.RESOURCE_EXHAUSTED,
    ),
}  # fmt: skip

# Single native calls, with the size that bounds each of them
NATIVE: dict[str, str] = {
    "MatMul": "the inputs", "BatchMatMulV2": "the inputs", "Einsum": "the inputs",
    "Svd": "the input", "Qr": "the input", "SelfAdjointEigV2": "the input", "Eig": "the input",
    "MatrixInverse": "the input", "MatrixSolve": "the inputs", "Cholesky": "the input",
    "TopKV2": "the input (a sort)", "Unique": "the input (a sort)", "FFT": "the input",
    "Fill": "the output", "Range": "the output", "Tile": "the output", "Mfcc": "the filters",
    "StatelessRandomUniformV2": "the output", "StatelessRandomNormalV2": "the output",
    "Conv2D": "the padded input", "Conv3D": "the padded input", "MaxPool": "the input",
    "DepthwiseConv2dNative": "the padded input",
    "DepthwiseConv2dNativeBackpropFilter": "windows × filter", "AvgPoolGrad": "the gradient",
    "QuantizedAvgPool": "the windows", "CropAndResize": "the output",
    "ResizeBilinear": "the output", "ResizeArea": "the output",
    "ImageProjectiveTransformV3": "the output", "ScaleAndTranslate": "the output",
    "UnicodeTranscode": "one string", "RegexReplace": "one string", "DecodeBase64": "one string",
    "StringToHashBucketStrong": "one string", "DecodeCompressed": "one string, output limited",
    "DecodePng": "max_tensor_bytes", "DecodeJpeg": "max_tensor_bytes",
}  # fmt: skip


@pytest.fixture
def ended_task(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the calling thread run a task whose step ends as soon as a kernel looks."""
    set_running_task((CancelledError("the step has ended"),))
    yield
    set_running_task(())


@pytest.fixture
def small_limit() -> Iterator[None]:
    before = tensor_limit()
    set_tensor_limit(1 << 30)
    yield
    set_tensor_limit(before)


def run(made: Case) -> None:
    session = new_session(SessionOptions(config=pb.ConfigProto(inter_op_parallelism_threads=-1)))
    session.create(made.graph)
    (step,) = made.steps
    session.run(step.feeds, step.fetches, step.targets)


@pytest.mark.parametrize("op", IN_BLOCKS)
def test_the_steps_end_by_themselves(op: str):
    run(IN_BLOCKS[op])


@pytest.mark.parametrize("op", IN_BLOCKS)
def test_a_kernel_with_a_long_loop_looks_at_its_task(op: str, ended_task: None):
    with pytest.raises(CancelledError, match="the step has ended"):
        run(IN_BLOCKS[op])


@pytest.mark.parametrize("op", BEFORE)
def test_too_much_work_is_refused_before_it_starts(op: str, small_limit: None):
    made, code = BEFORE[op]
    with pytest.raises(OpError) as caught:
        run(made)
    assert caught.value.code is code, caught.value.message


def test_every_op_of_the_tables_has_a_kernel():
    named = {*IN_BLOCKS, *BEFORE, *NATIVE}
    assert named - op_index().keys() == set()
