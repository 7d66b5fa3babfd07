"""The settings of served models as replicas of Ray Serve (`runstep deploy ray`)."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, model_validator

from server.settings_sections.numbers import MAX_COUNT, Amount, Count, Seconds


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ReplicaRange(_Section):
    """A number of replicas that follows the load.

    Replicas are added when each has had more than `queued_per_replica` requests, running and
    waiting, for `more_after_seconds`, and ended when fewer would do for `fewer_after_seconds`.
    """

    min: Count = Field(default=1, ge=1)
    max: Count = Field(ge=1)
    queued_per_replica: Amount = Field(default=4, gt=0)
    more_after_seconds: Seconds = Field(default=30, ge=0)
    fewer_after_seconds: Seconds = Field(default=600, ge=0)

    @model_validator(mode="after")
    def _is_a_range(self) -> ReplicaRange:
        if self.min > self.max:
            raise ValueError(f"min is {self.min} and max is {self.max}; min must not exceed max")
        return self


class ModelReplicas(_Section):
    """What one model has instead of the values of `ray.serve`."""

    replicas: int | ReplicaRange | None = None
    cpus: Amount | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _has_replicas(self) -> ModelReplicas:
        _check_replicas(self.replicas)
        return self


class RayServeSettings(_Section):
    """How the models of an application of Ray Serve are spread over a cluster.

    Each model has `replicas`, each of which takes `cpus` of Ray's account and at most `max_ongoing`
    requests at a time, running and waiting for a thread. `fronts` receive the requests; in each of
    them `max_queued` requests of a model may wait for a place in a replica.
    """

    replicas: int | ReplicaRange = 1
    cpus: Amount = Field(default=1, ge=0)
    fronts: Count = Field(default=1, ge=1)
    max_ongoing: Count = Field(default=1024, ge=1)
    max_queued: Count = Field(default=1024, ge=1)
    models: Mapping[str, ModelReplicas] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_replicas(self) -> RayServeSettings:
        _check_replicas(self.replicas)
        return self

    def of(self, name: str) -> tuple[int | ReplicaRange, float]:
        """Return the replicas of a model, and the CPUs of each."""
        own = self.models.get(name, ModelReplicas())
        replicas = self.replicas if own.replicas is None else own.replicas
        return replicas, self.cpus if own.cpus is None else own.cpus


def _check_replicas(replicas: int | ReplicaRange | None) -> None:
    if isinstance(replicas, int) and replicas < 1:
        raise ValueError(f"replicas must be at least 1, got {replicas}")
    if isinstance(replicas, int) and replicas > MAX_COUNT:
        raise ValueError(f"replicas must be at most {MAX_COUNT}, got {replicas}")
