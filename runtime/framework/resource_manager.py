"""Resources by (container, type, name): what a session keeps between steps.

Guarantees: thread-safe (one lock over the table; each resource has a lock of its own for its
contents); creation by `look_up_or_create` happens once however many threads ask. A fork shares
every resource that can be shared, without copying what it holds.

TF: tensorflow/core/framework/resource_mgr.h (ResourceMgr)
"""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, NotFoundError
from runtime.framework.dtypes import DataType

DEFAULT_CONTAINER = "localhost"
_private_numbers = itertools.count()  # next() is atomic


def private_name(node: str) -> str:
    """A name for the resource of a node without a `shared_name`, unique in the process.

    The resource ends with its session. TF: resource_mgr.cc (ContainerInfo::Init)
    """
    return f"_{next(_private_numbers)}_{node}"


class Resource:
    """Something a session owns under a name: a variable, a table, a queue, an iterator."""

    # How TensorFlow's messages call the type: its C++ name, mangled.
    type_name = "N10tensorflow12ResourceBaseE"

    def fork(self) -> Resource | None:
        """An independent resource with the same contents, cheaply; None when there is none.

        Whoever gets None has to run the initialisation again (a queue, an iterator).
        """
        return None

    @property
    def bytes_held(self) -> int:
        """Bytes of tensors that this resource alone keeps alive; 0 when shared or unknown."""
        return 0


@dataclasses.dataclass(frozen=True, slots=True)
class ResourceHandle:
    """The value of a resource tensor: a scalar that names a resource.

    `resource` is set when the handle is bound to one object (an anonymous iterator, a variable of
    a template); otherwise the manager is asked by container, type and name.
    """

    container: str
    name: str
    type_name: str
    device: str = "/job:localhost/replica:0/task:0/device:CPU:0"
    dtype: DataType | None = None
    # Static shape of the value: None when the rank is unknown, −1 for an unknown dimension.
    value_shape: tuple[int, ...] | None = None
    resource: Resource | None = dataclasses.field(default=None, compare=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """A handle is a scalar tensor."""
        return ()

    def read(self) -> np.ndarray:
        """What a handle of version 1 refers to: a vector of two strings."""
        return np.array([self.container.encode(), self.name.encode()], object)


R = TypeVar("R", bound=Resource)


class VariableChanges:
    """Tells whether any variable of this process has changed, without a look at each of them.

    `newest` is another object after every write to a variable, and after every removal of a
    resource, whichever manager has it. No lock: each change stores an object of its own, so that
    an object that was seen after a change never comes back for a later one.
    """

    def __init__(self) -> None:
        self.newest = object()

    def note(self) -> None:
        """Something has changed: to be called after the change."""
        self.newest = object()


variable_changes = VariableChanges()


class ResourceManager:
    """The table of one session, or of all master-service sessions of a server."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # guards _containers, not the resources in it
        self._containers: dict[str, dict[tuple[str, str], Resource]] = {}

    def find(self, container: str, kind: type[R], name: str) -> R | None:
        """The resource, or None."""
        table = self._containers.get(container or DEFAULT_CONTAINER)
        # One dict read is atomic; no lock on this path, which every variable read takes.
        return None if table is None else table.get((kind.type_name, name))  # type: ignore[return-value]

    def look_up(self, container: str, kind: type[R], name: str) -> R:
        """The resource; NotFoundError with TensorFlow's text when there is none."""
        found = self.find(container, kind, name)
        if found is None:
            raise NotFoundError(self.missing_message(container, kind.type_name, name))
        return found

    def missing_message(self, container: str, type_name: str, name: str) -> str:
        """TensorFlow's text for a resource that does not exist."""
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
        """The resource, made by `create` when there is none.

        Raises InvalidArgumentError when `create` makes another kind.
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
                table[key] = made
            return table[key]  # type: ignore[return-value]

    def put(self, container: str, name: str, resource: Resource) -> None:
        """Add or replace a resource."""
        with self._lock:
            table = self._containers.setdefault(container or DEFAULT_CONTAINER, {})
            table[(resource.type_name, name)] = resource
        variable_changes.note()

    def delete(self, container: str, type_name: str, name: str) -> None:
        """Remove a resource; NotFoundError when there is none."""
        with self._lock:
            table = self._containers.get(container or DEFAULT_CONTAINER, {})
            if (type_name, name) not in table:
                raise NotFoundError(self.missing_message(container, type_name, name))
            del table[(type_name, name)]
        variable_changes.note()

    def end_private(self, handle: ResourceHandle) -> None:
        """Remove what a handle names, if a `private_name` was made for it."""
        if handle.name.startswith("_"):  # no shared_name may
            with self._lock:
                table = self._containers.get(handle.container or DEFAULT_CONTAINER, {})
                table.pop((handle.type_name, handle.name), None)

    def find_by_type_name(self, container: str, type_name: str, name: str) -> Resource | None:
        """The resource of a type known only by its name, or None."""
        return self._containers.get(container or DEFAULT_CONTAINER, {}).get((type_name, name))

    def clear(self, container: str | None = None) -> None:
        """Drop one container, or all of them."""
        with self._lock:
            if container is None:
                self._containers.clear()
            else:
                self._containers.pop(container or DEFAULT_CONTAINER, None)
        variable_changes.note()

    def __iter__(self) -> Iterator[tuple[str, str, Resource]]:
        """(container, name, resource) of everything, as it was at the call."""
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
        """Bytes that only this manager's resources keep alive."""
        return sum(resource.bytes_held for _, _, resource in self)

    def fork(self) -> ResourceManager | None:
        """A manager with the same contents, shared until written; None if one can't be shared."""
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
