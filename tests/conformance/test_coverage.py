"""Every registered kernel runs in at least one recorded case."""

from __future__ import annotations

import ast
import pathlib

import pytest

from runtime.foundation.errors import OpError
from runtime.framework.kernel_registry import KernelRegistry
from runtime.kernels import kernel_defs
from tests.conformance.shown_types import RecordedNode, answered_nodes, recorded_cases

ROOT = pathlib.Path(__file__).parent.parent.parent
_UNIT = "tests/unit/runtime"
_HANDLES = f"{_UNIT}/kernels/state/test_session_tensors.py"
_SESSION_TENSORS = f"{_HANDLES}::test_a_session_tensor_is_kept_given_and_forgotten"
_SESSION_HANDLES = f"{_HANDLES}::test_the_handle_of_a_session_tensor_may_be_fed_in_its_place"
_TRANSFER = (
    f"{_UNIT}/graph/passes/test_partition.py::test_partition_graphs_hold_pairs_of_send_and_recv"
)
_XLA = f"{_UNIT}/kernels/xla/test_pass_through.py"
_OTHERS = f"{_UNIT}/kernels/data/test_data_without_reference.py"
# Op without a usable case → the test that runs its kernel.
ELSEWHERE = {
    # TensorFlow's answer changes from run to run, or names a device.
    "DeleteSessionTensor": _SESSION_TENSORS,
    "GetSessionHandle": _SESSION_TENSORS,
    "GetSessionHandleV2": _SESSION_HANDLES,
    "GetSessionTensor": _SESSION_TENSORS,
    "_Recv": _TRANSFER,
    "_Send": _TRANSFER,
    # In TensorFlow 2.21 every node of the op fails or crashes: there is no reference.
    "AnonymousRandomSeedGenerator":
        f"{_OTHERS}::test_a_random_seed_generator_lives_as_long_as_its_dataset",
    "DeleteMemoryCache": f"{_OTHERS}::test_a_cache_lives_as_long_as_its_dataset",
    "DeleteRandomSeedGenerator":
        f"{_OTHERS}::test_a_random_seed_generator_lives_as_long_as_its_dataset",
    "DeleteSeedGenerator": f"{_OTHERS}::test_a_seed_generator_lives_as_long_as_its_dataset",
    "FixedLengthRecordReader":
        f"{_OTHERS}::test_the_first_reader_of_records_lacks_an_attribute_that_it_needs",
    "SnapshotNestedDatasetReader": f"{_OTHERS}::test_a_nested_reader_is_a_dataset_of_datasets",
    "TopK":
        f"{_UNIT}/kernels/array/test_sorting_top_k.py"
        "::test_the_first_version_takes_k_as_an_attribute",
    # TensorFlow 2.21 runs them only inside a function that it compiles.
    "XlaIf": f"{_XLA}::test_a_branch_is_called",
    "XlaReplicaId": f"{_XLA}::test_the_only_replica_is_number_0",
    # Integers: TensorFlow's answer is not reproduced, see docs/kernel_differences.md.
    "Round":
        f"{_UNIT}/kernels/math/test_elementwise_unary.py::test_an_integer_rounded_is_itself",
}  # fmt: skip


def ops_of_kernels_without_a_case() -> set[str]:
    """Return the ops with a kernel that no recorded case runs in a step without an error."""
    kernels = list(kernel_defs())
    registry = KernelRegistry(kernels)
    reached: set[int] = set()
    for _, case, answers in recorded_cases():
        for node in answered_nodes(case, answers):
            try:
                reached.add(id(registry.find(RecordedNode(node))))
            except OpError:  # a node without a kernel, such as a function call
                continue
    return {kernel.op for kernel in kernels if id(kernel) not in reached}


def test_every_kernel_runs_in_a_recorded_case_or_has_a_test_named() -> None:
    without = ops_of_kernels_without_a_case()
    assert without - ELSEWHERE.keys() == set(), "no case and no other test named"
    assert ELSEWHERE.keys() - without == set(), "excused, and a case has them meanwhile"


@pytest.mark.parametrize("op", ELSEWHERE)
def test_the_test_named_for_an_op_is_there_and_mentions_it(op: str) -> None:
    path, _, name = ELSEWHERE[op].partition("::")
    source = (ROOT / path).read_text()
    functions = {
        node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)
    }
    assert name in functions, f"{path} has no {name}, only {sorted(functions)}"
    # The test itself, and the functions of its file that it calls.
    called = {node.id for node in ast.walk(functions[name]) if isinstance(node, ast.Name)}
    texts = [ast.unparse(functions[each]) for each in {name, *called} & functions.keys()]
    assert any(_mentions(text, op) for text in texts), f"{ELSEWHERE[op]} does not run {op}"


def _mentions(text: str, op: str) -> bool:
    """Return whether the op's name is a word of the code's strings and docstrings."""
    words = text.replace('"', " ").replace("'", " ").replace(",", " ").split()
    return op in words
