"""Loads a SavedModel: creates a session with its graph, restores and initialises it.

The session gets the graph first. Then it runs the restore op, which is fed with the paths of the
variables and assets, and last the init op, which is fed with the paths of the assets. Both may read
only files in the model's folder.

TF: tensorflow/cc/saved_model/loader.cc (LoadSavedModel), loader.h (SavedModelBundle)
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable, Mapping

import numpy as np

import protos as pb
from runtime.executors.dataflow_graph import V1_CONTROL_FLOW
from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.thread_pool import ThreadPool
from runtime.framework.io.file_gate import FolderGate
from runtime.registrations import direct_session_factory, kernel_registry, new_session
from runtime.saved_model.initialization import asset_feeds, init_op_name, restore_feeds
from runtime.saved_model.inspection import OpReport, inspect_ops, lacks_kernels
from runtime.saved_model.meta_graph import load_meta_graph_into_session
from runtime.saved_model.package_checks import check_nodes
from runtime.saved_model.saved_model_files import find_meta_graph, read_saved_model
from runtime.sessions.direct.direct_session import DirectSession
from runtime.sessions.direct.session_template import SessionTemplate
from runtime.sessions.runtime_session import RunRequest, RuntimeSession
from runtime.sessions.session_options import SessionOptions

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class SavedModelBundle:
    """A loaded SavedModel. `session` serves it; `open_session` opens independent sessions of it.

    `asset_feeds` maps names of tensors to paths of assets. `has_kernel` returns whether an op has a
    kernel. `template`, from which `open_session` opens sessions, is None if `session` does not run
    in this process; a target that keeps loaded models (`RuntimeSession.create_from_saved_model`)
    has a template of its own.

    TF: tensorflow/cc/saved_model/loader.h (SavedModelBundle)
    """

    session: RuntimeSession
    meta_graph_def: pb.MetaGraphDef
    export_dir: str
    asset_feeds: Mapping[str, np.ndarray]
    has_kernel: Callable[[str], bool]
    run_options: pb.RunOptions | None = None
    pool: ThreadPool | None = None
    template: SessionTemplate | None = None

    @property
    def signatures(self) -> Mapping[str, pb.SignatureDef]:
        """The signatures of the model by key."""
        return self.meta_graph_def.signature_def

    @property
    def report(self) -> OpReport:
        """The ops of the model. It is made at each access, because it names every node."""
        return inspect_ops(self.meta_graph_def, self.has_kernel)

    def open_session(self, options: SessionOptions) -> tuple[RuntimeSession, bool]:
        """Return (a new session in the state right after loading, whether it shares the weights).

        If the state can't be shared, for example because it includes a queue or an iterator, the
        restore op and the init op run again. The new session does not have the changes made in
        `session` since loading.
        """
        if self.template is not None and not options.target:
            opened = direct_session_factory().open_template(options, self.template)
            if opened is not None:
                return opened, True
        session, is_shared = _session_of(options, self.meta_graph_def, self.export_dir)
        try:
            if not is_shared:
                _initialize(session, self)
        except BaseException:
            session.close()
            raise
        return session, is_shared


def load_saved_model(
    options: SessionOptions,
    run_options: pb.RunOptions | None,
    export_dir: str,
    tags: Iterable[str],
    pool: ThreadPool | None = None,
) -> SavedModelBundle:
    """Load the meta graph of `export_dir` whose tags are exactly `tags`.

    The restore op and the init op run with `run_options` and `pool`. Raises NotFoundError if there
    is no model, no meta graph with these tags, or if an op is unknown; InvalidArgumentError if a
    signature, the restore op or the init op reaches an op that has no kernel, or if a program or a
    model in the graph is damaged (`KernelDef.check`, `constants`); and what running the restore op
    and the init op raises.
    """
    meta_graph_def = find_meta_graph(read_saved_model(export_dir), tags)
    session, is_loaded = _session_of(options, meta_graph_def, export_dir)
    bundle = SavedModelBundle(
        session,
        meta_graph_def,
        export_dir,
        asset_feeds(meta_graph_def, export_dir),
        _has_kernel(options),
        run_options,
        pool,
    )
    try:
        if lacks_kernels(meta_graph_def.graph_def, bundle.has_kernel):
            _check_kernels(bundle.report, export_dir)
        check_nodes(meta_graph_def.graph_def)
        if not is_loaded:
            _initialize(session, bundle)
    except BaseException:
        session.close()
        raise
    if not isinstance(session, DirectSession):
        return bundle
    return dataclasses.replace(bundle, template=session.freeze_template())


def _session_of(
    options: SessionOptions, meta_graph_def: pb.MetaGraphDef, export_dir: str
) -> tuple[RuntimeSession, bool]:
    """Return (a new session with the graph, whether the target has loaded the model by itself)."""
    if options.target:
        session = new_session(options)
        try:
            if session.create_from_saved_model(export_dir, list(meta_graph_def.meta_info_def.tags)):
                return session, True
        except BaseException:
            session.close()
            raise
        session.close()
    return load_meta_graph_into_session(options, meta_graph_def), False


def inspect_saved_model(export_dir: str, tags: Iterable[str]) -> tuple[pb.MetaGraphDef, OpReport]:
    """Return (the meta graph of `export_dir` whose tags are exactly `tags`, the report on its ops).

    No session is created. Raises NotFoundError if there is no model or no such meta graph.
    """
    meta_graph_def = find_meta_graph(read_saved_model(export_dir), tags)
    return meta_graph_def, inspect_ops(meta_graph_def, _has_kernel(SessionOptions()))


def _has_kernel(options: SessionOptions) -> Callable[[str], bool]:
    own = {kernel.op for kernel in options.kernels}
    built_in = kernel_registry()
    return lambda op: op in own or op in V1_CONTROL_FLOW or built_in.has(op)


def _check_kernels(report: OpReport, export_dir: str) -> None:
    """Log the ops that have no kernel.

    Raises InvalidArgumentError if a signature, the restore op or the init op reaches one of them.
    """
    if report.without_kernel:
        counts = (f"{op} ({len(nodes)})" for op, nodes in sorted(report.without_kernel.items()))
        _log.warning("%s: ops without kernel (nodes): %s", export_dir, ", ".join(counts))
    if report.reached_by:
        reasons = "; ".join(f"{who}: {', '.join(ops)}" for who, ops in report.reached_by.items())
        raise InvalidArgumentError(
            f"No OpKernel was registered to support these ops of {export_dir}: {reasons}"
        )


def _initialize(session: RuntimeSession, bundle: SavedModelBundle) -> None:
    """Restore the variables of `bundle` in `session`, then run the init op."""
    path_feeds = restore_feeds(bundle.meta_graph_def, bundle.export_dir)
    if path_feeds is not None:
        target = bundle.meta_graph_def.saver_def.restore_op_name
        _run_once(session, bundle, {**bundle.asset_feeds, **path_feeds}, target)
    init_op = init_op_name(bundle.meta_graph_def, bundle.export_dir)
    if init_op:
        _run_once(session, bundle, bundle.asset_feeds, init_op)


def _run_once(
    session: RuntimeSession, bundle: SavedModelBundle, feeds: Mapping[str, np.ndarray], target: str
) -> None:
    request = RunRequest(
        feeds,
        targets=(target,),
        options=bundle.run_options,
        pool=bundle.pool,
        files=FolderGate((bundle.export_dir,)),
    )
    session.run_async(request).result()
