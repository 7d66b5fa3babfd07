"""Which engine computes clusters and in which precision, for the server and for each model."""

from __future__ import annotations

import dataclasses
from typing import Literal, Protocol

from server.settings_errors import WrongKeyError

Engine = Literal["auto", "onnxruntime", "openvino"]
Precision = Literal["float32", "bfloat16", "f32", "bf16"]
_OPENVINO: Engine = "openvino"  # the only one that computes in bfloat16
_SHORT: dict[str, Precision] = {"f32": "float32", "bf16": "bfloat16"}


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterEngine:
    """An engine, and the precision in which it computes with float32 tensors."""

    engine: Engine
    precision: Precision


class Chosen(Protocol):
    """What the server's settings, or those of a model, say."""

    @property
    def engine(self) -> Engine | None:
        """The engine; None for the server's."""

    @property
    def precision(self) -> Precision | None:
        """The precision; None for the server's, if the engine is the server's too."""


def cluster_engine(
    server: ClusterEngine, model: Chosen | None = None, where: str = ""
) -> ClusterEngine:
    """Return what computes the clusters of a model, or of what is on no model.

    A model that names another engine than the server's, and no precision, has float32. Raises
    WrongKeyError, in which `where` comes before the key, if the engine does not have the precision.
    """
    engine, precision = server.engine, server.precision
    if model is not None:
        engine = model.engine or engine
        inherited: Precision = precision if engine == server.engine else "float32"
        precision = model.precision or inherited
    precision = _SHORT.get(precision, precision)
    if precision == "bfloat16" and engine != _OPENVINO:
        raise WrongKeyError(
            f"{where}precision", f"bfloat16 requires engine {_OPENVINO}, got engine {engine}"
        )
    return ClusterEngine(engine, precision)
