"""Datasets whose elements are computed once and kept in memory or in a tensor bundle.

TF: tensorflow/core/kernels/data/{cache_dataset,cache}_op.cc
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import weakref
from collections.abc import Iterable

import numpy as np

from runtime.foundation.errors import AlreadyExistsError, NotFoundError, OutOfRangeError
from runtime.framework.attr_value import text
from runtime.framework.data.dataset import (
    Dataset,
    DatasetIterator,
    Element,
    State,
    UnaryDataset,
    UnaryIterator,
    note_element,
)
from runtime.framework.dtypes import Types
from runtime.framework.io.file_errors import file_error
from runtime.framework.io.tensor_bundle import index_path
from runtime.framework.io.tensor_bundle_reader import TensorBundleReader
from runtime.framework.io.tensor_bundle_writer import TensorBundleWriter
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import Shapes
from runtime.framework.resource_manager import Resource, ResourceHandle
from runtime.framework.string_tensor import scalar_string
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box

_numbers = itertools.count()  # makes names unique; next() is atomic, so no lock is needed


class MemoryCache(Resource):
    """The elements of a dataset, which are stored when a pass over the dataset has completed.

    Guarantees: thread-safe; the elements of the first complete pass are kept.
    """

    type_name = "N10tensorflow4data18MemoryCacheManagerE"

    def __init__(self) -> None:
        self._lock = threading.RLock()  # guards assignments to elements, _by_index and _pass
        self.elements: list[Element] | None = None
        self._by_index: list[Element] = []  # elements read so far for access by index
        self._pass: DatasetIterator | None = None

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the elements, and the pass that reads them."""
        return 0, (self.elements, self._by_index, self._pass)

    def complete(self, elements: list[Element]) -> None:
        """Store `elements`, unless the elements of another pass have been stored before."""
        with self._lock:
            if self.elements is None:
                self.elements = elements

    def up_to(self, context: OpKernelContext, index: int, dataset: Dataset) -> list[Element]:
        """Return the elements up to `index`, or all elements if there are fewer.

        The elements are kept for later calls. The list may contain further elements that have been
        read before.
        """
        with self._lock:
            if self._pass is None:
                self._pass = dataset.iterate(context, "Cache")
            while len(self._by_index) <= index:
                context.cancellation.check()
                element = self._pass.get_next(context)
                if element is None:
                    break
                self._by_index.append(element)
                note_element(context, element)
            return self._by_index


def anonymous_memory_cache() -> tuple[ResourceHandle, None]:
    """AnonymousMemoryCache: return (the only handle of a new cache, its deleter)."""
    name = f"AnonymousMemoryCache{next(_numbers)}"
    return ResourceHandle("", name, MemoryCache.type_name, resource=MemoryCache()), None


def dummy_memory_cache() -> ResourceHandle:
    """DummyMemoryCache: return a handle without a cache.

    Each dataset that gets such a handle creates a cache of its own.
    """
    return ResourceHandle("", "", MemoryCache.type_name)


def delete_memory_cache(handle: ResourceHandle, deleter: TensorValue) -> None:
    """DeleteMemoryCache: do nothing, because a cache lives as long as its handles."""


class CacheDataset(UnaryDataset):
    """CacheDataset, CacheDatasetV2: the input's elements, which are cached in the file `filename`.

    If `filename` is empty, the elements are cached in memory.
    """

    kind = "MemoryCache"

    def __init__(
        self,
        input_dataset: Dataset,
        filename: np.ndarray,
        cache: ResourceHandle | None = None,
        *,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset)
        self.filename = text(scalar_string(filename))
        resource = cache.resource if isinstance(cache, ResourceHandle) else None
        self.cache = resource if isinstance(resource, MemoryCache) else MemoryCache()

    @property
    def has_random_access(self) -> bool:
        """Whether the input has random access and the cache is in memory."""
        return not self.filename and self.input.has_random_access

    def checked_element_at(self, context: OpKernelContext, index: int) -> Element:
        """Return the element at `index`, also if the input has no random access.

        If the input has no random access and the cache is in memory, the elements up to `index` are
        read and cached. Raises OutOfRangeError if `index` is out of range.
        """
        if self.filename or self.input.has_random_access:
            return super().checked_element_at(context, index)
        kept = self.cache.elements
        if kept is None:
            kept = self.cache.up_to(context, index, self.input)
        if not 0 <= index < len(kept):
            raise OutOfRangeError(f"Index out of range [0, {len(kept)}):{index}")
        return kept[index]

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """Return the cached element, or the input's element if the cache is not complete."""
        cached = self.cache.elements
        if cached is not None:
            return cached[index]
        return self.input.element_at(context, index)

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator that reads the cache if it is complete, otherwise fills it."""
        if not self.filename:
            return _MemoryIterator(self, context, prefix)
        return _FileIterator(self, context, prefix)


class _MemoryIterator(UnaryIterator):
    state = ("input", "seen", "position")

    def __init__(self, dataset: CacheDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._cache = dataset.cache
        self.seen: list[Element] | None = [] if dataset.cache.elements is None else None
        self.position = 0

    def get_next(self, context: OpKernelContext) -> Element | None:
        if self.seen is None:
            elements = self._cache.elements or []
            if self.position >= len(elements):
                return None
            self.position += 1
            return elements[self.position - 1]
        element = self.next_input(context)
        if element is None:
            self._cache.complete(self.seen)
        else:
            self.seen.append(element)
        return element

    def save(self) -> State:
        return {**super().save(), "kept": self._cache.elements if self.seen is None else None}

    def restore(self, context: OpKernelContext, saved: State) -> None:
        super().restore(context, saved)
        if saved["kept"] is not None:
            self._cache.complete(saved["kept"])


class _FileIterator(DatasetIterator):
    """Reads or writes the cache file.

    The file is read if it is complete when the first element is requested.
    """

    def __init__(self, dataset: CacheDataset, context: OpKernelContext, prefix: str) -> None:
        context.step.files.check_read(dataset.filename)
        self._dataset = dataset
        self._prefix = prefix
        self._inner: _FileReaderIterator | _FileWriterIterator | None = None

    def get_next(self, context: OpKernelContext) -> Element | None:
        if self._inner is None:
            self._inner = self._opened(context)
        return self._inner.get_next(context)

    def _opened(self, context: OpKernelContext) -> _FileReaderIterator | _FileWriterIterator:
        if os.path.exists(index_path(self._dataset.filename)):
            return _FileReaderIterator(self._dataset, context)
        return _FileWriterIterator(self._dataset, context, self._prefix)

    def save(self) -> State:
        return {"inner": None if self._inner is None else self._inner.save()}

    def restore(self, context: OpKernelContext, saved: State) -> None:
        state = saved["inner"]
        if state is None:
            return
        self._inner = self._opened(context)
        if isinstance(self._inner, _FileWriterIterator) and "seen" not in state:
            raise NotFoundError(f"The cache file {self._dataset.filename} is gone")
        if isinstance(self._inner, _FileReaderIterator) and "seen" in state:
            # After the checkpoint, the saved iterator has continued and written the whole file.
            state = {"position": len(state["seen"])}
        self._inner.restore(context, state)


class _FileWriterIterator(UnaryIterator):
    """Returns the input's elements and writes them to a bundle after the last one.

    A lock file prevents other iterators from writing the same cache. If the state of a writer was
    saved, the writer's lock file remains until a restored writer has finished.
    """

    state = ("input", "seen", "number")

    def __init__(self, dataset: CacheDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._dataset = dataset
        self._unlock: weakref.finalize[..., _FileWriterIterator] | None = None
        self.number = 0  # number of restorations so far; part of the lock file's name
        self.seen: list[Element] = []

    def _lock_file(self, number: int) -> str:
        return f"{self._dataset.filename}_{number}.lockfile"

    def _lock(self, context: OpKernelContext) -> None:
        path = self._lock_file(self.number)
        context.step.files.check_write(path)
        # A restored writer takes over from a writer that continued after the same checkpoint.
        exclusive = 0 if self.number else os.O_EXCL
        try:
            os.close(os.open(path, os.O_CREAT | exclusive | os.O_WRONLY))
        except FileExistsError:
            raise AlreadyExistsError(
                "There appears to be a concurrent caching iterator running - cache lockfile "
                f"already exists ('{path}'). If you are sure no other running computations are "
                "using this cache prefix, delete the lockfile and re-initialize the iterator."
            ) from None
        except OSError as error:
            raise file_error(error, path) from None
        self._unlock = weakref.finalize(self, _remove, path)

    def get_next(self, context: OpKernelContext) -> Element | None:
        is_running = self.input is not None
        if is_running and self._unlock is None:
            self._lock(context)
        element = self.next_input(context)
        if element is not None:
            self.seen.append(element)
        elif is_running:
            self._write(context)
        return element

    def _write(self, context: OpKernelContext) -> None:
        with TensorBundleWriter(self._dataset.filename, context.step.files) as writer:
            for index, element in enumerate(self.seen):
                parts = zip(element, self._dataset.output_types, strict=True)
                for component, (value, data_type) in enumerate(parts):
                    writer.add(_key(index, component), box(value), data_type)
            writer.finish()
        for number in range(self.number + 1):
            _remove(self._lock_file(number))

    def save(self) -> State:
        if self._unlock is not None:
            self._unlock.detach()
        return super().save()

    def restore(self, context: OpKernelContext, saved: State) -> None:
        super().restore(context, saved)
        self.number += 1


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


def _key(index: int, component: int) -> str:
    return f"{index:05}_{component}"


class _FileReaderIterator(DatasetIterator):
    state = ("position",)

    def __init__(self, dataset: CacheDataset, context: OpKernelContext) -> None:
        self._reader = TensorBundleReader(dataset.filename, context.step.files)
        self._count = len(dataset.output_types)
        self.position = 0

    def get_next(self, context: OpKernelContext) -> Element | None:
        keys = [_key(self.position, component) for component in range(self._count)]
        if not keys or keys[0] not in self._reader:
            return None
        self.position += 1
        return tuple(self._reader.read(key) for key in keys)


KERNELS = (
    KernelDef("AnonymousMemoryCache", anonymous_memory_cache),
    KernelDef("CacheDataset", CacheDataset),
    KernelDef("CacheDatasetV2", CacheDataset),
    KernelDef("DeleteMemoryCache", delete_memory_cache),
    KernelDef("DummyMemoryCache", dummy_memory_cache),
)
