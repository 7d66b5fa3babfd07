"""Every class of resource says what it holds, and tracemalloc finds as much."""

from __future__ import annotations

import dataclasses
import gc
import importlib
import io
import itertools
import pkgutil
import sys
import tracemalloc
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import runtime.kernels
from runtime.foundation.errors import ResourceExhaustedError
from runtime.framework.cancellation import CancellationManager
from runtime.framework.data.dataset import Dataset, DatasetIterator, Element, note_element
from runtime.framework.data.iterator_resource import IteratorResource
from runtime.framework.data.seed_generator import SeedGenerator
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import FileGate, OpKernelContext
from runtime.framework.resource_manager import Resource, ResourceManager
from runtime.framework.resources.barrier import Barrier
from runtime.framework.resources.conditional_accumulator import (
    ConditionalAccumulator,
    DenseConditionalAccumulator,
    SparseConditionalAccumulator,
    SparseGradient,
)
from runtime.framework.resources.dataset_thread_pool import DatasetThreadPool
from runtime.framework.resources.lookup_table import HashTable, LookupTable
from runtime.framework.resources.mutable_hash_table import MutableDenseHashTable, MutableHashTable
from runtime.framework.resources.mutex import Mutex
from runtime.framework.resources.queue_kinds import (
    PaddingFIFOQueue,
    PriorityQueue,
    RandomShuffleQueue,
)
from runtime.framework.resources.queues import Queue
from runtime.framework.resources.record_reader import Reader
from runtime.framework.resources.staging_area import StagingArea, StagingBuffer, StagingMap
from runtime.framework.resources.step_batches import (
    StepBatcher,
    StepGradientBatcher,
    StepUnbatcher,
)
from runtime.framework.resources.tensor_array import TensorArray
from runtime.framework.resources.variable import RefVariable, Variable
from runtime.kernels.data.dataset_cache import MemoryCache
from runtime.kernels.data.multi_device_iterators import MultiDeviceIterator
from runtime.kernels.io.summary_writers import SummaryFileWriter
from runtime.kernels.sparse.sparse_tensors_map import SparseTensorsMap
from runtime.kernels.state.ref_variables import TemporaryVariable
from runtime.kernels.state.session_tensors import SessionTensor
from runtime.kernels.state.stacks import Stack

ABSTRACT = {ConditionalAccumulator, LookupTable, StagingArea}
HOUR = 3_600_000_000  # microseconds
NOTHING = CancellationManager()
FLOAT, STRING, INT64 = DataType.FLOAT, DataType.STRING, DataType.INT64
_keys = itertools.count()


def floats() -> np.ndarray:
    return np.full(1000, 1.5, np.float32)


def key() -> int:
    return 1_000_000 + next(_keys)


def text(size: int = 3000) -> bytes:
    return b"%d" % key() + bytes(size)


def strings() -> np.ndarray:
    return np.array([text(500) for _ in range(8)], object)


def ignore(elements: list[Element]) -> Element:
    return ()


class Source(Dataset):
    """As many elements as anybody reads, each of which its iterator keeps."""

    kind = "Source"

    def __init__(self) -> None:
        super().__init__((FLOAT,), ((1000,),))

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        return Keeping()


class Keeping(DatasetIterator):
    def __init__(self) -> None:
        self.kept: list[Element] = []

    def get_next(self, context: OpKernelContext) -> Element | None:
        self.kept.append((floats(),))
        note_element(context, self.kept[-1])
        return self.kept[-1]


def context_of(resources: ResourceManager) -> Any:
    session = types.SimpleNamespace(resources=resources)
    step = types.SimpleNamespace(session=session, cancellation=NOTHING)
    return OpKernelContext(types.SimpleNamespace(name="node"), step)  # type: ignore[arg-type]


CONTEXT = context_of(ResourceManager())


@dataclasses.dataclass
class Growth:
    """How a resource is made, takes one more value, and drops all that it can drop."""

    make: Callable[[], Resource]
    add: Callable[[Any], object]
    drop: Callable[[Any], object] | None = None


def grow_iterator(iterator: IteratorResource) -> None:
    if iterator.dataset is None:
        iterator.make(CONTEXT, Source())
    iterator.get_next(CONTEXT)


def grow_devices(iterator: MultiDeviceIterator) -> None:
    if not iterator._incarnation:
        iterator.start(CONTEXT, Source())
    iterator.get_next(CONTEXT, 1, 1)


def grow_text(variable: Variable) -> None:
    old = variable.read().tolist() if variable.is_initialized else []
    variable.assign(np.array([*old, text()], object))


def grow_sparse(accumulator: SparseConditionalAccumulator) -> None:
    rows = np.arange(1, dtype=np.int64) + key()
    gradient = SparseGradient(rows, floats()[None], np.ones(1, np.int64))
    accumulator.apply(0, gradient)


def grow_numbers(variable: Variable) -> None:
    size = variable.read().size if variable.is_initialized else 0
    variable.assign(np.zeros(size + 1000, np.float32))


def grow_gradient(accumulator: DenseConditionalAccumulator) -> None:
    accumulator.apply(0, np.zeros(200_000, np.float32))


def fill_table(table: HashTable) -> None:
    if not table.is_initialized:
        keys = [b"key %d" % key() for _ in range(1000)]
        table.initialize(np.array(keys, object), np.arange(1000))


def stage_part(area: StagingMap) -> None:
    area.run(lambda: area.put(np.array(key()), [0], [floats()]), NOTHING)


def take_all(queue: Queue) -> None:
    queue.dequeue(queue.size, ignore, NOTHING)


def write_next(array: TensorArray) -> None:
    array.write(len(array), strings())


def enqueue(queue: Queue) -> None:
    queue.enqueue([(np.int64(key()), floats(), strings())], NOTHING)


QUEUE = ("queue", (INT64, FLOAT, STRING), (), -1)
GROWTHS: dict[type[Resource], Growth] = {
    Queue: Growth(lambda: Queue(*QUEUE), enqueue, take_all),
    PaddingFIFOQueue: Growth(lambda: PaddingFIFOQueue(*QUEUE), enqueue, take_all),
    RandomShuffleQueue: Growth(lambda: RandomShuffleQueue(*QUEUE, 0, 1, 1), enqueue, take_all),
    PriorityQueue: Growth(lambda: PriorityQueue(*QUEUE), enqueue, take_all),
    Barrier: Growth(
        lambda: Barrier("barrier", (FLOAT, STRING), ((-1,), ())),
        lambda barrier: barrier.insert([text(9)], 0, [floats()], NOTHING),
        lambda barrier: barrier.close(True, NOTHING),
    ),
    StagingBuffer: Growth(
        lambda: StagingBuffer(0, 0),
        lambda area: area.run(lambda: area.put((floats(), strings())), NOTHING),
        lambda area: area.clear(),
    ),
    StagingMap: Growth(lambda: StagingMap(0, 0, 2, True), stage_part, lambda area: area.clear()),
    DenseConditionalAccumulator: Growth(
        lambda: DenseConditionalAccumulator("sum", FLOAT, None, False),
        grow_gradient,
        lambda sum_: sum_.take(1, NOTHING),
    ),
    SparseConditionalAccumulator: Growth(
        lambda: SparseConditionalAccumulator("sum", FLOAT, None, False),
        grow_sparse,
        lambda sum_: sum_.take(1, NOTHING),
    ),
    HashTable: Growth(lambda: HashTable(STRING, INT64), fill_table),
    MutableHashTable: Growth(
        lambda: MutableHashTable(STRING, STRING),
        lambda table: table.insert(np.array([text(9)], object), np.array([text()], object)),
        lambda table: table.import_values(np.empty(0, object), np.empty(0, object)),
    ),
    MutableDenseHashTable: Growth(
        lambda: MutableDenseHashTable(INT64, FLOAT, (1000,), np.array(-1), np.array(-2)),
        lambda table: table.insert(np.array([key()]), floats()[None]),
        lambda table: table.remove(np.array(list(table._values))),
    ),
    TensorArray: Growth(
        lambda: TensorArray("array", STRING, 0, dynamic_size=True),
        write_next,
        lambda array: array.close(),
    ),
    Stack: Growth(
        lambda: Stack("stack", FLOAT, -1),
        lambda stack: stack.push(floats()),
        lambda stack: [stack.pop() for _ in list(stack._items)],
    ),
    SparseTensorsMap: Growth(
        SparseTensorsMap,
        lambda kept: kept.add((np.zeros((1000, 2), np.int64), floats(), np.ones(2, np.int64))),
        lambda kept: kept.take(list(kept._tensors)),
    ),
    SessionTensor: Growth(lambda: SessionTensor(np.zeros(10**6), FLOAT), lambda _: None),
    StepBatcher: Growth(
        lambda: StepBatcher(10**6, HOUR, ()), lambda batch: batch.add([floats()], NOTHING)
    ),
    StepUnbatcher: Growth(
        lambda: StepUnbatcher(HOUR),
        lambda batch: batch.exchange([(key(), floats())], key(), NOTHING),
    ),
    StepGradientBatcher: Growth(
        StepGradientBatcher, lambda batch: batch.add(floats(), key(), None, NOTHING)
    ),
    MemoryCache: Growth(MemoryCache, lambda cache: cache.up_to(CONTEXT, key() % 997, Source())),
    IteratorResource: Growth(lambda: IteratorResource((FLOAT,), ((1000,),)), grow_iterator),
    MultiDeviceIterator: Growth(
        lambda: MultiDeviceIterator(("a", "b"), (FLOAT,), ((1000,),)), grow_devices
    ),
    Variable: Growth(lambda: Variable(FLOAT), grow_numbers, lambda variable: variable.forget()),
    RefVariable: Growth(
        lambda: RefVariable(STRING, "text"), grow_text, lambda variable: variable.forget()
    ),
}
GROWTHS[TemporaryVariable] = dataclasses.replace(
    GROWTHS[RefVariable], make=lambda: TemporaryVariable(STRING, "text", "maker")
)
# Resources whose size does not depend on what steps do.
CONSTANT: dict[type[Resource], int] = {
    DatasetThreadPool: 0,
    Mutex: 0,
    SeedGenerator: 0,
    Reader: io.DEFAULT_BUFFER_SIZE,
    SummaryFileWriter: io.DEFAULT_BUFFER_SIZE,
}


@pytest.fixture(scope="module")
def classes() -> set[type[Resource]]:
    """All classes of resources of the runtime, with those of every room of kernels."""
    for module in pkgutil.walk_packages(runtime.kernels.__path__, "runtime.kernels."):
        importlib.import_module(module.name)
    return set(_subclasses(Resource))


def _subclasses(kind: type[Resource]) -> Iterator[type[Resource]]:
    for each in kind.__subclasses__():
        if each.__module__.startswith("runtime."):
            yield each
        yield from _subclasses(each)


def test_every_class_says_what_it_holds(classes: set[type[Resource]]) -> None:
    assert len(classes) > 25
    silent = {each.__name__ for each in classes if each.held is Resource.held} - {
        each.__name__ for each in ABSTRACT
    }
    assert not silent
    assert classes == {*GROWTHS, *CONSTANT, *ABSTRACT}


@pytest.mark.parametrize("kind", GROWTHS, ids=lambda kind: kind.__name__)
def test_a_class_counts_what_tracemalloc_finds(kind: type[Resource]) -> None:
    growth = GROWTHS[kind]
    growth.add(growth.make())  # whatever is made once for the process exists now
    gc.collect()
    tracemalloc.start()
    try:
        began = tracemalloc.get_traced_memory()[0]
        resource = growth.make()
        empty = 0 if kind is SessionTensor else resource.bytes_held
        for _ in range(200):
            growth.add(resource)
        gc.collect()
        found = tracemalloc.get_traced_memory()[0] - began
        counted = resource.bytes_held - empty
        assert 0.75 * found <= counted <= 1.3 * found
        if growth.drop is not None:
            growth.drop(resource)
            gc.collect()
            assert resource.bytes_held <= empty + 200 * 72  # a closed array keeps nothing
            assert tracemalloc.get_traced_memory()[0] - began < 0.2 * found
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "kind",
    [kind for kind in GROWTHS if kind.limit_growth is not Resource.limit_growth],
    ids=lambda kind: kind.__name__,
)
def test_a_class_stops_growing_at_the_limit(
    kind: type[Resource], monkeypatch: pytest.MonkeyPatch
) -> None:
    growth = GROWTHS[kind]
    manager = ResourceManager(max_bytes=1 << 20)
    monkeypatch.setattr(sys.modules[__name__], "CONTEXT", context_of(manager))
    resource = manager.look_up_or_create("", kind, "one", growth.make)
    with pytest.raises(ResourceExhaustedError, match="max_session_bytes is 1048576"):
        for _ in range(10_000):
            growth.add(resource)
    gc.collect()
    assert (1 << 19) < manager.bytes_held < (1 << 20) + (1 << 19)
    # Others are refused too, until something is dropped.
    other = manager.look_up_or_create("", Stack, "other", GROWTHS[Stack].make)
    with pytest.raises(ResourceExhaustedError):
        for _ in range(400):
            GROWTHS[Stack].add(other)


def test_what_is_constant_is_small(classes: set[type[Resource]], tmp_path: Any) -> None:
    class Anywhere(FileGate):
        def check_read(self, path: str) -> None: ...

        def check_write(self, path: str) -> None: ...

    made: dict[type[Resource], Resource] = {
        DatasetThreadPool: DatasetThreadPool(4),
        Mutex: Mutex(),
        SeedGenerator: SeedGenerator(1, 2, True),
        Reader: Reader("reader", lambda name: iter([(name, b"")])),
        SummaryFileWriter: SummaryFileWriter(str(tmp_path), 1, 1, "", Anywhere()),
    }
    assert made.keys() == CONSTANT.keys()
    for kind, resource in made.items():
        assert resource.bytes_held <= CONSTANT[kind] + 100
    writer = made[SummaryFileWriter]
    assert isinstance(writer, SummaryFileWriter)
    writer.close()
    assert writer.bytes_held == 0
