"""The resources that a session keeps between steps, by container, type and name.

Guarantees: thread-safe (one lock guards the table; each resource has a lock for its contents);
`look_up_or_create` creates a resource only once, even if several threads call it at the same time.

TF: tensorflow/core/framework/resource_mgr.h (ResourceMgr)
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, NotFoundError
from runtime.framework.derived_values import DerivedValuesInUse
from runtime.framework.dtypes import DataType
from runtime.framework.growth_limit import NO_LIMIT, GrowthLimit
from runtime.framework.held_bytes import value_bytes
from runtime.framework.memory_account import MemoryAccount

DEFAULT_CONTAINER = "localhost"
_HANDLE_BYTES = 256  # of a handle and its names
_private_numbers = itertools.count()  # needs no lock, because next() is atomic


def private_name(node: str) -> str:
    """Return a name that is unique in the process, for a resource that nodes do not share.

    A node requires one if its attribute `shared_name` is empty. The resource lives as long as the
    session. TF: resource_mgr.cc (ContainerInfo::Init)
    """
    return f"_{next(_private_numbers)}_{node}"


class Resource:
    """An object that a session owns under a name: a variable, a table, a queue, an iterator.

    A fork is a copy of a resource for another session that shares the contents until one of the
    two sessions writes.

    Every class says in `held` what its instances keep in memory. If this can be many small values,
    it must count them when they come and go (`HeldBytes`), because sessions are counted often.
    """

    # The mangled C++ name of the type, which TensorFlow's error messages contain.
    type_name = "N10tensorflow12ResourceBaseE"

    def held(self) -> tuple[int, Iterable[object]]:
        """Return (the bytes that only this resource holds, values whose bytes are not in these).

        What is shared with a fork does not count. Any thread may call it at any time; it must not
        wait for a lock that is held while a kernel or another `held` runs. See
        `runtime.framework.held_bytes.Holder`.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what it holds")

    def limit_growth(self, limit: GrowthLimit) -> None:
        """Report later growth to `limit`. A class does so if a step can add any number of values.

        The resource manager calls it when it gets the resource.
        """

    def fork(self) -> Resource | None:
        """Return a fork of this resource, or None if it can't be forked (a queue, an iterator).

        If the result is None, the caller must run the new session's initialisation instead.
        """
        return None

    @property
    def bytes_held(self) -> int:
        """The number of bytes that only this resource keeps in memory."""
        size, values = self.held()
        return size + value_bytes(*values)


@dataclasses.dataclass(frozen=True, slots=True)
class ResourceHandle:
    """The value of a resource tensor: a scalar that names a resource.

    `resource` is set if the handle refers to an object directly (an anonymous iterator, a variable
    of a template); otherwise the resource is looked up by container, type and name.
    """

    container: str
    name: str
    type_name: str
    device: str = "/job:localhost/replica:0/task:0/device:CPU:0"
    dtype: DataType | None = None
    # Static shape of the variable's value: −1 is an unknown dimension, None an unknown rank.
    value_shape: tuple[int, ...] | None = None
    resource: Resource | None = dataclasses.field(default=None, compare=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor that holds the handle, which is a scalar."""
        return ()

    def held(self) -> tuple[int, Iterable[object]]:
        """Return what the handle keeps alive: a resource that it refers to directly."""
        return _HANDLE_BYTES, () if self.resource is None else (self.resource,)

    def read(self) -> np.ndarray:
        """Return the string tensor `[2]` of container and name, the value of a version 1 handle."""
        return np.array([self.container.encode(), self.name.encode()], object)


R = TypeVar("R", bound=Resource)


class VariableChanges:
    """A marker that changes whenever any variable of this process may have changed.

    `newest` is replaced by a new object after every write to a variable, and after a resource of
    any manager was replaced or removed. A reader keeps the object that it read and later compares
    it with `newest`. No lock is required, because the new object is never the one that the reader
    keeps.
    """

    def __init__(self) -> None:
        self.newest = object()

    def note(self) -> None:
        """Replace `newest`; the caller must have made the change before the call."""
        self.newest = object()


variable_changes = VariableChanges()


class ResourceManager:
    """The resources of one session, or of all master-service sessions of a server.

    A resource that grows beyond what `limit` allows for all of them raises ResourceExhaustedError.
    """

    def __init__(self, max_bytes: int = sys.maxsize) -> None:
        self._lock = threading.RLock()  # guards `_containers`, not the contents of the resources
        self._containers: dict[str, dict[tuple[str, str], Resource]] = {}
        # What steps have derived from the variables; see `runtime.executors.derived_executor`.
        self.derived: DerivedValuesInUse = {}
        # The resources of the template of which this manager's resources are forks, or None.
        self.template: ResourceManager | None = None
        self.max_bytes = max_bytes  # `sys.maxsize` if there is no limit
        self._limit: GrowthLimit | None = None  # made at the first use: most steps need none
        # What sessions that share this manager may have together, or None.
        self.account: MemoryAccount | None = None

    @property
    def limit(self) -> GrowthLimit:
        """The limit to which the resources report their growth."""
        if self._limit is None:
            if self.max_bytes == sys.maxsize:
                return NO_LIMIT
            # Without this reference, a manager and its resources would be a reference cycle.
            manager = weakref.ref(self)
            self._limit = GrowthLimit(lambda: _held_by(manager()), self.max_bytes)
        return self._limit

    def limit_bytes(self, max_bytes: int) -> None:
        """Set the most bytes that the resources may hold."""
        with self._lock:
            self.max_bytes, self._limit = max_bytes, None
            for _, _, resource in self:
                resource.limit_growth(self.limit)

    def shared_account(
        self, limit: int | None, setting: str, parent: MemoryAccount | None
    ) -> MemoryAccount:
        """Return the account of all sessions that share this manager; the first one sets it."""
        with self._lock:
            if self.account is None:
                name = "sessions that share their variables"
                self.account = MemoryAccount(name, limit, setting, parent)
                reference = weakref.ref(self)
                self.account.count_kept = lambda: (
                    0 if (manager := reference()) is None else manager.bytes_held
                )
            return self.account

    def find(self, container: str, kind: type[R], name: str) -> R | None:
        """Return the resource of a type and name in `container`, or None if there is none."""
        table = self._containers.get(container or DEFAULT_CONTAINER)
        # No lock, because every read of a variable calls this, and one read of a dict is atomic.
        return None if table is None else table.get((kind.type_name, name))  # type: ignore[return-value]

    def look_up(self, container: str, kind: type[R], name: str) -> R:
        """Return the resource; raise NotFoundError with TensorFlow's text if there is none."""
        found = self.find(container, kind, name)
        if found is None:
            raise NotFoundError(self.missing_message(container, kind.type_name, name))
        return found

    def missing_message(self, container: str, type_name: str, name: str) -> str:
        """Return TensorFlow's error text for a resource that does not exist."""
        container = container or DEFAULT_CONTAINER
        if container not in self._containers:
            return (
                f"Container {container} does not exist. "
                f"(Could not find resource: {container}/{name})"
            )
        return f"Resource {container}/{name}/{type_name} does not exist."

    def look_up_or_create(
        self, container: str, kind: type[R], name: str, create: Callable[[], R]
    ) -> R:
        """Return the resource; if there is none, add the result of `create` and return that.

        Raises InvalidArgumentError if `create` returns a resource of another type than `kind`.
        """
        found = self.find(container, kind, name)
        if found is not None:
            return found
        with self._lock:
            table = self._containers.setdefault(container or DEFAULT_CONTAINER, {})
            key = (kind.type_name, name)
            if key not in table:
                made = create()
                if made.type_name != kind.type_name:
                    raise InvalidArgumentError(
                        f"Trying to create resource {name} of type {made.type_name} "
                        f"as {kind.type_name}"
                    )
                made.limit_growth(self.limit)
                table[key] = made
            return table[key]  # type: ignore[return-value]

    def put(self, container: str, name: str, resource: Resource) -> None:
        """Add a resource; it replaces a resource that has the same type and name."""
        with self._lock:
            table = self._containers.setdefault(container or DEFAULT_CONTAINER, {})
            resource.limit_growth(self.limit)
            table[(resource.type_name, name)] = resource
        variable_changes.note()

    def delete(self, container: str, type_name: str, name: str) -> None:
        """Remove a resource; raise NotFoundError if there is none."""
        with self._lock:
            table = self._containers.get(container or DEFAULT_CONTAINER, {})
            if (type_name, name) not in table:
                raise NotFoundError(self.missing_message(container, type_name, name))
            del table[(type_name, name)]
        variable_changes.note()

    def end_private(self, handle: ResourceHandle) -> None:
        """Remove the resource of a handle if its name was made by `private_name`."""
        if handle.name.startswith("_"):  # a `shared_name` never begins with "_"
            with self._lock:
                table = self._containers.get(handle.container or DEFAULT_CONTAINER, {})
                table.pop((handle.type_name, handle.name), None)

    def find_by_type_name(self, container: str, type_name: str, name: str) -> Resource | None:
        """Return the resource whose type has the name `type_name`, or None if there is none."""
        return self._containers.get(container or DEFAULT_CONTAINER, {}).get((type_name, name))

    def clear(self, container: str | None = None) -> None:
        """Remove all resources of `container`, or of all containers if `container` is None."""
        with self._lock:
            if container is None:
                self._containers.clear()
            else:
                self._containers.pop(container or DEFAULT_CONTAINER, None)
        variable_changes.note()
        self.derived.clear()

    def __iter__(self) -> Iterator[tuple[str, str, Resource]]:
        """Iterate over (container, name, resource) for all resources present at the call."""
        with self._lock:
            return iter(
                [
                    (container, name, resource)
                    for container, table in self._containers.items()
                    for (_, name), resource in table.items()
                ]
            )

    @property
    def bytes_held(self) -> int:
        """The number of bytes that only this manager and its resources keep in memory.

        Memory that several resources share counts once.
        """
        total = sum(use.values.bytes_held for use in list(self.derived.values()) if use.is_own)
        rest: list[object] = []
        for _, _, resource in self:
            size, values = resource.held()
            total += size
            rest += values
        return total + value_bytes(*rest) if rest else total

    def fork(self) -> ResourceManager | None:
        """Return a manager with forks of all resources, or None if a resource can't be forked."""
        copy = ResourceManager()
        with self._lock:
            for container, table in self._containers.items():
                target = copy._containers[container] = {}
                for key, resource in table.items():
                    forked = resource.fork()
                    if forked is None:
                        return None
                    target[key] = forked
        return copy


def _held_by(manager: ResourceManager | None) -> int:
    return 0 if manager is None else manager.bytes_held
