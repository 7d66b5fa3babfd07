"""Seeds: the graphs from which hostile ones are made, with values for their feeds."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import multiprocessing
import pathlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

import protos as pb
from runtime.api import SessionOptions, load_saved_model
from runtime.clusters.emitters import EMITTERS
from runtime.errors import OpError
from runtime.saved_model.exporter import export_bundle
from tests.conformance.case import as_tensor, cases_of, families
from tests.conformance.cluster_cases import ops_of, with_constants
from tests.unit.runtime.clusters.loops import recurrent_layers

MODELS = pathlib.Path(__file__).parents[1] / "fixtures" / "saved_models"
_LARGEST_MODEL = 2_000_000  # bytes of a frozen graph
_RANDOM_OPS = frozenset(("Batch",))  # which give other values each time
_LOOPS = frozenset(("While", "StatelessWhile"))


@dataclasses.dataclass(frozen=True)
class Seed:
    """A graph, and one step of it; `targets` run once before the step."""

    name: str
    graph: pb.GraphDef
    feeds: Mapping[str, np.ndarray]
    fetches: Sequence[str]
    targets: Sequence[str] = ()


def seeds() -> list[Seed]:
    """All seeds, in the same order in every process."""
    return [*_cases(), *_layers(), *_models()]


def _cases() -> Iterator[Seed]:
    for family in families():
        for case in cases_of(family):
            ops = ops_of(case.graph)
            if ops & _RANDOM_OPS:
                continue
            if ops & (EMITTERS.keys() | _LOOPS) and len(case.steps) == 1:
                made = with_constants(case)
                step = made.steps[0]
                feeds = {name: as_tensor(value) for name, value in step.feeds.items()}
                yield Seed(f"{family}/{case.name}", made.graph, feeds, step.fetches)


def _layers() -> Iterator[Seed]:
    for name in recurrent_layers.names():
        layer = recurrent_layers.read(name)
        has_variables = any(node.name == recurrent_layers.INITIALIZE for node in layer.graph.node)
        targets = (recurrent_layers.INITIALIZE,) if has_variables else ()
        yield Seed(f"layer/{name}", layer.graph, layer.feeds, list(layer.answers), targets)


def _models() -> Iterator[Seed]:
    for path in sorted(MODELS.iterdir()):
        if (path / "saved_model.pb").exists():
            yield from _frozen(path)


def _frozen(path: pathlib.Path) -> Iterator[Seed]:
    """Yield the model's signature with its variables as constants, if the model can be frozen."""
    options = SessionOptions(clusters="off")
    bundle = load_saved_model(options, None, str(path), ["serve"])
    try:
        with tempfile.TemporaryDirectory() as folder:
            export_bundle(bundle, f"{folder}/frozen", freeze=True)
            content = pathlib.Path(folder, "frozen", "saved_model.pb").read_bytes()
    except OpError:
        return
    finally:
        bundle.session.close()
    meta_graph = pb.SavedModel.FromString(content).meta_graphs[0]
    signature = meta_graph.signature_def["serving_default"]
    if not signature.outputs or len(content) > _LARGEST_MODEL:
        return
    feeds = {}
    for info in signature.inputs.values():
        sizes = [dim.size if dim.size > 0 else 2 for dim in info.tensor_shape.dim]
        one = b"a" if info.dtype not in _NUMPY else 1
        feeds[info.name] = np.full(sizes, one, _NUMPY.get(info.dtype, object))
    fetches = [each.name for each in signature.outputs.values()]
    yield Seed(f"model/{path.name}", meta_graph.graph_def, feeds, fetches)


_NUMPY: Mapping[int, type] = {
    pb.DT_FLOAT: np.float32,
    pb.DT_DOUBLE: np.float64,
    pb.DT_INT32: np.int32,
    pb.DT_INT64: np.int64,
    pb.DT_BOOL: np.bool_,
    pb.DT_UINT8: np.uint8,
}


def read_seeds() -> list[Seed]:
    """Return all seeds, made in another process, so that this one has no threads and may fork."""
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(seeds).result()
