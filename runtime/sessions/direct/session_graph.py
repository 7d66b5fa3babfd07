"""SessionGraph: the graph of a session, and the steps compiled from it.

Guarantees: thread-safe; `extend` is atomic, and a step keeps the graph from which it was compiled.

Locks: `_lock` guards the change from one graph to the next. Readers take no lock: `extend` replaces
the cache before the graph, so no reader compiles steps of the new graph into a template's cache.

TF: tensorflow/core/common_runtime/direct_session.cc (Create, Extend, GetOrCreateExecutors)
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

import protos as pb
from runtime.executors.compiler import FunctionExecutors, compiled_bytes
from runtime.executors.dataflow import DataflowExecutor
from runtime.executors.step import Executor
from runtime.foundation.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
)
from runtime.foundation.long_lived_objects import long_lived_objects
from runtime.framework.dtypes import DataType
from runtime.graph.graph import Graph
from runtime.graph.graph_constructor import extend_graph
from runtime.graph.passes.pruning import find_endpoint
from runtime.graph.tensor_connections import connect_tensors
from runtime.graph.topology import has_back_edge
from runtime.sessions.direct.executor_cache import (
    MAX_BYTES,
    CompiledStep,
    ExecutorCache,
    SpelledKey,
    spelled_key,
    type_of,
)
from runtime.sessions.direct.request_checks import check_names
from runtime.sessions.direct.session_template import SessionTemplate
from runtime.sessions.direct.step_compiler import StepCompiler
from runtime.sessions.runtime_session import RunRequest
from runtime.sessions.session_options import SessionOptions


class SessionGraph:
    """The graph and compiled steps of one session; `create` or `extend` sets the graph."""

    def __init__(
        self, options: SessionOptions, compiler: StepCompiler, template: SessionTemplate | None
    ) -> None:
        self._options = options
        self._template = template
        self._lock = threading.Lock()
        self._graph: Graph | None = None
        self._is_finalized = False
        self.compiler = compiler
        self.cache = ExecutorCache(max_bytes=_cache_bytes(options))
        self.functions: FunctionExecutors | None = None
        self.version = 0  # number of calls of `extend` that extended an existing graph
        if template is not None:
            # Before the first `extend`, all sessions of the template compile into its cache.
            self.cache = template.cache
            self._set(template.graph)

    # The graph

    @property
    def bytes_held(self) -> int:
        """The bytes of the nodes and compiled steps that the session does not share, estimated."""
        graph, template = self._graph, self._template
        size = 0 if graph is None else graph.bytes_held + compiled_bytes(graph.library)
        if template is None:
            return size + self.cache.bytes_held
        size -= template.graph.bytes_held + compiled_bytes(template.graph.library)
        return max(0, size) + (0 if self.cache is template.cache else self.cache.bytes_held)

    @property
    def nodes_for_collector(self) -> int:
        """The number of nodes that only the garbage collector frees when the session is gone.

        They are those of a graph with loops of v1 control flow, unless a template has it too.
        """
        graph, template = self._graph, self._template
        if graph is None or (template is not None and graph is template.graph):
            return 0
        return len(graph.nodes) if has_back_edge(graph.nodes.values()) else 0

    def create(self, graph_def: pb.GraphDef, max_bytes: int | None = None) -> None:
        """Set the first graph; raise AlreadyExistsError if there is a graph, even an empty one.

        Raises ResourceExhaustedError if the graph needs more than `max_bytes` (None: no limit).
        """
        with self._lock:
            if self._graph is not None:
                raise AlreadyExistsError("A Graph has already been created for this session.")
            self._set(self._extended(Graph(), graph_def, max_bytes))

    def extend(self, graph_def: pb.GraphDef, max_bytes: int | None = None) -> None:
        """Add nodes and functions to the graph; if this raises, the graph is unchanged.

        Raises ResourceExhaustedError if they need more than `max_bytes` (None: no limit).
        """
        with self._lock:
            self._check_not_finalized()
            is_first = self._graph is None
            if not is_first:
                self._check_not_static()
            graph = self._extended(self._graph or Graph(), graph_def, max_bytes)
            if self._template is not None and self.cache is self._template.cache:
                self.cache = ExecutorCache(
                    self._template.cache, max_bytes=_cache_bytes(self._options)
                )
            self._set(graph)
            if not is_first:
                self.version += 1

    def _set(self, graph: Graph) -> None:
        self.functions = self.compiler.functions(graph)
        self._graph = graph

    def _extended(self, graph: Graph, graph_def: pb.GraphDef, max_bytes: int | None) -> Graph:
        with long_lived_objects():
            extended = extend_graph(graph, graph_def, self._options.max_graph_nodes, max_bytes)
            self.compiler.place([extended.nodes[node.name] for node in graph_def.node], extended)
        return extended

    def current(self, what: str) -> Graph:
        """Return the current graph.

        Raises InvalidArgumentError if there is none; `what` is the called method in its message.
        """
        graph = self._graph
        if graph is None:
            raise InvalidArgumentError(f"Session was not created with a graph before {what}()!")
        return graph

    def to_graph_def(self) -> pb.GraphDef:
        """Return the current graph as a GraphDef, which is empty if there is no graph."""
        return (self._graph or Graph()).to_graph_def()

    def tensor_info(self, name: str) -> tuple[DataType, tuple[int, ...] | None]:
        """Return the element type and the static shape of an output; None if it has no shape."""
        node, index = find_endpoint(self.current("Run"), name)
        shapes = node.find_attr("_output_shapes")
        if shapes:
            return node.output_types[index], shapes[index]
        if node.op.startswith("Placeholder"):
            return node.output_types[index], node.attr("shape")
        return node.output_types[index], None

    def finalize(self) -> None:
        """Refuse all further `extend`s and compilations with FailedPreconditionError."""
        self._is_finalized = True

    # Compiled steps

    def drop_compiled(self) -> None:
        """Drop the compiled steps and what was built for them; later runs compile anew."""
        self.cache.clear()
        if self._graph is not None:
            self._graph.library.drop_built()

    def compiled(self, request: RunRequest) -> CompiledStep:
        """Return the compiled step of a request; compile it if it is not in the cache.

        Raises InvalidArgumentError if a name is not a string, and what compiling raises.
        """
        _check_all_names(request.feeds, request.fetches, request.targets)
        key = spelled_key(request.feeds, request.fetches, request.targets)
        found = self.cache.find(key)
        return found if found is not None else self._compile(self.current("Run"), key, self.cache)

    def compiled_callable(self, options: pb.CallableOptions) -> CompiledStep:
        """Return the compiled step of a callable; raise what `connect_tensors` raises."""
        graph = connect_tensors(
            self.current("MakeCallable"), options.tensor_connection, options.feed
        )
        # Only this callable uses a graph with tensor connections, so it needs a cache of its own.
        cache = ExecutorCache() if options.tensor_connection else self.cache
        key = spelled_key(options.feed, options.fetch, options.target)
        return cache.find(key) or self._compile(graph, key, cache)

    def compiled_in_parts(
        self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]
    ) -> tuple[DataflowExecutor, list[DataType]]:
        """Compile and return the executor of a partial run, and the types of its feeds.

        It is not cached.
        """
        _check_all_names(feeds, fetches, targets)
        graph = self.current("PRunSetup")
        self._check_not_finalized()
        executor = self.compiler.compile_in_parts(graph, feeds, fetches, targets)
        return executor, [type_of(graph, name) for name in feeds]

    def _compile(self, graph: Graph, key: SpelledKey, cache: ExecutorCache) -> CompiledStep:
        def compile_step(*wanted: Sequence[str]) -> Executor:
            self._check_not_finalized()  # not earlier, because cached steps are allowed
            return self.compiler.compile(graph, *wanted)

        return cache.find_or_compile(graph, key, compile_step)

    def _check_not_static(self) -> None:
        experimental = self._options.config.experimental
        is_static = experimental.optimize_for_static_graph
        if is_static and not experimental.disable_optimize_for_static_graph:
            raise FailedPreconditionError(
                "Extending the graph is not supported when `optimize_for_static_graph` is true."
            )

    def _check_not_finalized(self) -> None:
        if self._is_finalized:
            raise FailedPreconditionError("Session has been finalized.")


def _check_all_names(feeds: Iterable[str], fetches: Iterable[str], targets: Iterable[str]) -> None:
    check_names("feeds", feeds)
    check_names("fetches", fetches)
    check_names("targets", targets)


def _cache_bytes(options: SessionOptions) -> int:
    """Return the most bytes of compiled steps that are kept for later runs."""
    limit = options.max_session_bytes
    return MAX_BYTES if limit is None else min(MAX_BYTES, limit // 4)
