"""The resources of a session, which it keeps between steps, by container, type and name.

Guarantees: thread-safe (one lock guards the table; each resource guards its contents with its own
lock); `look_up_or_create` creates a resource once, however many threads call it. A fork shares the
contents of the resources without copying them.

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
    """A name, unique in the process, for the resource of a node without a `shared_name`.

    The resource lives as long as its session. TF: resource_mgr.cc (ContainerInfo::Init)
    """
    return f"_{next(_private_numbers)}_{node}"


class Resource:
    """An object that a session owns under a name: a variable, a table, a queue, an iterator."""

    # The name of the type in TensorFlow's messages: its mangled C++ name.
    type_name = "N10tensorflow12ResourceBaseE"

    def fork(self) -> Resource | None:
        """An independent resource with the same contents, made without copying them; or None.

        None means that this resource can't be forked (a queue, an iterator): the caller has to run
        the initialisation of the new session instead.
        """
        return None

    @property
    def bytes_held(self) -> int:
        """Bytes of tensors that only this resource keeps alive; 0 when shared or unknown."""
        return 0


@dataclasses.dataclass(frozen=True, slots=True)
class ResourceHandle:
    """The value of a resource tensor: a scalar that names a resource.

    `resource` is set when the handle refers to an object directly (an anonymous iterator, a
    variable of a template); otherwise the resource is looked up by container, type and name.
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
        """The contents of a version 1 handle, a string tensor `[2]`: container and name."""
        return np.array([self.container.encode(), self.name.encode()], object)


R = TypeVar("R", bound=Resource)


class VariableChanges:
    """A marker that changes whenever any variable of this process may have changed.

    `newest` is replaced by a new object after every write to a variable, and after every
    replacement or removal of a resource, of any manager. A reader that holds the object it saw
    compares it with `newest`; it needs no lock, because each change stores a new object, which is
    never the one that the reader holds.
    """

    def __init__(self) -> None:
        self.newest = object()

    def note(self) -> None:
        """Replace `newest`; must be called after a change, not before it."""
        self.newest = object()


variable_changes = VariableChanges()


class ResourceManager:
    """The resources of one session, or of all master-service sessions of a server."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # guards _containers, not the contents of the resources
        self._containers: dict[str, dict[tuple[str, str], Resource]] = {}

    def find(self, container: str, kind: type[R], name: str) -> R | None:
        """The resource, or None."""
        table = self._containers.get(container or DEFAULT_CONTAINER)
        # Without the lock, as every variable read comes here: a single dict read is atomic.
        return None if table is None else table.get((kind.type_name, name))  # type: ignore[return-value]

    def look_up(self, container: str, kind: type[R], name: str) -> R:
        """The resource; NotFoundError with TensorFlow's text when there is none."""
        found = self.find(container, kind, name)
        if found is None:
            raise NotFoundError(self.missing_message(container, kind.type_name, name))
        return found

    def missing_message(self, container: str, type_name: str, name: str) -> str:
        """TensorFlow's error text for a resource that does not exist."""
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
        """The resource, created by `create` when there is none.

        Raises InvalidArgumentError when `create` returns a resource of another type.
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
        """Add a resource, or replace the one of its type and name."""
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
        """Remove the resource of a handle if its name is a `private_name`."""
        if handle.name.startswith("_"):  # a shared_name may not begin so
            with self._lock:
                table = self._containers.get(handle.container or DEFAULT_CONTAINER, {})
                table.pop((handle.type_name, handle.name), None)

    def find_by_type_name(self, container: str, type_name: str, name: str) -> Resource | None:
        """The resource of a type that is given by name, or None."""
        return self._containers.get(container or DEFAULT_CONTAINER, {}).get((type_name, name))

    def clear(self, container: str | None = None) -> None:
        """Remove all resources of one container, or of all containers when None."""
        with self._lock:
            if container is None:
                self._containers.clear()
            else:
                self._containers.pop(container or DEFAULT_CONTAINER, None)
        variable_changes.note()

    def __iter__(self) -> Iterator[tuple[str, str, Resource]]:
        """(container, name, resource) of every resource in the table at the time of the call."""
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
        """A manager with forks of all resources; None if a resource can't be forked."""
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
