"""Settings: flags override the environment `RUNSTEP_…`, then the YAML file, then the defaults.

Every key of `configs/server.yaml` is a field here, with the same default; a test compares them. In
the environment `__` separates nested keys (`RUNSTEP_REST__PORT`), and lists are JSON. `MODEL_NAME`
and `MODEL_BASE_PATH` have the same meaning as in TensorFlow Serving's image.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from runtime.errors import InvalidArgumentError, NotFoundError
from server.settings_errors import WrongKeyError
from server.settings_sections.access import AccessSettings
from server.settings_sections.batching import BatchingSettings, ModelBatchingSettings
from server.settings_sections.engine import ClusterEngine, Engine, Precision, cluster_engine
from server.settings_sections.numbers import (
    MAX_THREADS,
    Bytes,
    Count,
    Milliseconds,
    Seconds,
    Threads,
    Version,
)
from server.settings_sections.ports import GrpcSettings, RestSettings, TlsSettings, is_loopback
from server.settings_sections.priorities import PriorityEntry, default_priorities
from server.settings_sections.ray_serve import RayServeSettings
from server.settings_sections.section import READS_OFF, Section
from server.settings_sources import (
    PREFIX,
    Sources,
    check_yaml,
    model_of_container,
    model_variables_of,
    read_sources,
    variables_of,
)

DEFAULT_CONFIG_PATH = Path("configs/server.yaml")
# The longest step of a session, in seconds, of a server that anyone beyond its machine may use.
OPEN_STEP_SECONDS = 300.0
MAX_PROCESSES = 64
Clusters = Annotated[Literal["auto", "off"], READS_OFF]
Graphs = Literal["anyone", "authenticated", "none"]


def _processes(value: object) -> object:
    text = str(value)
    if text == "auto" or (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_PROCESSES):
        return value if text == "auto" else int(text)
    raise ValueError(f"must be a number from 1 to {MAX_PROCESSES}, or auto")


# How many processes serve; "auto" is one for each schedulable core.
Processes = Annotated[int | Literal["auto"], PlainValidator(_processes)]


class AdminSettings(Section):
    """Whether models may be loaded, unloaded and reloaded over the ports, and from which folders.

    With authentication this requires the role admin besides.
    """

    enabled: bool = False
    model_folders: tuple[str, ...] = ()


class ConsoleSettings(Section):
    """The pages below /console."""

    enabled: bool = True


class RequestLogSettings(Section):
    """Which share of a model's requests is written to TFRecord files of PredictionLog."""

    filename_prefix: str = Field(min_length=1)
    sampling_rate: float = Field(default=1, ge=0, le=1)


class ModelSettings(Section):
    """One served model: a folder of numbered versions, and which versions to load."""

    name: str = Field(min_length=1)
    base_path: str = Field(min_length=1)
    version_policy: Literal["latest", "all", "specific"] = "latest"
    latest_versions: Count = Field(default=1, ge=1)
    specific_versions: tuple[Version, ...] = ()
    version_labels: Mapping[str, Version] = Field(default_factory=dict)
    clusters: Clusters | None = None
    engine: Engine | None = None
    precision: Precision | None = None
    request_log: RequestLogSettings | None = None
    batching: ModelBatchingSettings | None = None


class ModelLoadingSettings(Section):
    """The settings of loading served models."""

    max_retries: Count = Field(default=5, ge=0)
    retry_seconds: Seconds = Field(default=60, ge=0)
    allow_labels_for_unavailable: bool = False
    warmup: bool = True
    warmup_seconds: Seconds = Field(default=300, gt=0)
    warmup_iterations: Count = Field(default=1, ge=1)
    num_threads: Threads = Field(default=1, ge=1)
    tags: tuple[str, ...] = ("serve",)
    check_method_names: bool = False


class ThreadPoolSettings(Section):
    """One named inter-op pool; `num_threads` 0 means one thread for each schedulable core.

    `intra_op_threads` is the number of threads that may work on one kernel; in a low-priority pool
    it is always one. If `own_process` is true, long steps of a low-priority pool may run in a child
    process if they change no state, and the background process (server/background) answers HTTP
    requests that name a priority with this pool in their heads.
    """

    name: str = Field(min_length=1)
    num_threads: Threads = Field(default=0, ge=0)
    intra_op_threads: Threads = Field(default=0, ge=0)
    low_priority: bool = False
    queue_size: Count = Field(default=1024, ge=1)
    own_process: bool = True


class SessionSettings(Section):
    """The limits of the sessions that clients open.

    `graphs` is who may bring graphs; None means all who are authenticated, or anyone on a server
    without authentication.
    """

    enabled: bool = True
    graphs: Graphs | None = None
    max_open: Count = Field(default=1024, ge=1)
    default_lease_seconds: Seconds = Field(default=600, gt=0)
    max_lease_seconds: Seconds = Field(default=86400, gt=0)
    allowed_paths: tuple[str, ...] = ()
    model_folders: tuple[str, ...] = ()
    allow_new_global_pools: bool = False
    max_threads: Threads = Field(default=8, ge=1)
    max_tensor_bytes: Bytes = Field(default=1 << 30, gt=0)
    max_session_bytes: Bytes | None = Field(default=None, gt=0)
    max_step_bytes: Bytes | None = Field(default=None, gt=0)
    max_graph_nodes: Count = Field(default=1_000_000, gt=0)
    default_timeout_ms: Milliseconds = Field(default=0, ge=0)
    max_step_seconds: Seconds | None = Field(default=None, ge=0)
    max_running_steps: Count = Field(default=256, ge=1)
    max_owner_steps: Count = Field(default=512, ge=1)
    call_timeout_ms: Milliseconds = Field(default=60_000, gt=0)


class MemorySettings(Section):
    """The memory that steps may have, apart from the weights of served models.

    `max_process_bytes` bounds what the steps and sessions have together; None is half of what the
    machine or the control group of the process has left. Above `refuse_above_bytes` of resident
    memory no new work is taken; None is nine tenths of what the process can reach.
    """

    max_process_bytes: Bytes | None = Field(default=None, gt=0)
    refuse_above_bytes: Bytes | None = Field(default=None, gt=0)


class RaySettings(Section):
    """The Ray cluster on whose nodes sessions are, if `placement` is ray.

    Front ends of one `application` share its sessions. `nodes` are options of a `ray://` target
    that a node must fit, such as `label.zone=a`. `serve` is for `runstep deploy ray`.
    """

    address: str = "auto"
    application: str = Field(default="default", pattern=r"^[A-Za-z0-9_-]{1,64}$")
    nodes: str = ""
    idle_seconds: Seconds = Field(default=3600, gt=0)
    serve: RayServeSettings = RayServeSettings()


class LogSettings(Section):
    """The lowest level that is logged, and the format of a line."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["text", "json"] = "text"


_DEFAULT_POOLS = (
    ThreadPoolSettings(name="online"),
    ThreadPoolSettings(name="background", num_threads=1, low_priority=True),
)


class Settings(BaseSettings):
    """All settings of one server; they cannot be changed."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
    )

    rest: RestSettings = RestSettings()
    grpc: GrpcSettings = GrpcSettings()
    access: AccessSettings = AccessSettings()
    admin: AdminSettings = AdminSettings()
    console: ConsoleSettings = ConsoleSettings()
    tls: TlsSettings = TlsSettings()
    processes: Processes = 1
    placement: Literal["local", "ray"] = "local"
    ray: RaySettings = RaySettings()
    models: tuple[ModelSettings, ...] = ()
    model_config_file: str | None = None
    model_config_file_poll_seconds: Seconds = Field(default=0, ge=0)
    model_poll_seconds: Seconds = 1
    model_loading: ModelLoadingSettings = ModelLoadingSettings()
    batching: BatchingSettings = BatchingSettings()
    thread_pools: tuple[ThreadPoolSettings, ...] = _DEFAULT_POOLS
    priorities: Mapping[str, PriorityEntry] = Field(default_factory=default_priorities)
    default_priority: str = "normal"
    load_thread_pool: str | None = None
    session_config_file: str | None = Field(default=None, min_length=1)
    clusters: Clusters = "auto"
    engine: Engine = "auto"
    precision: Precision = "float32"
    sessions: SessionSettings = SessionSettings()
    memory: MemorySettings = MemorySettings()
    log: LogSettings = LogSettings()

    @property
    def step_seconds(self) -> float:
        """The longest that a step of a session may take, in seconds; 0 means no limit.

        If `sessions.max_step_seconds` is not set, a server that only its own machine can reach, or
        that knows its callers, has no limit.
        """
        if self.sessions.max_step_seconds is not None:
            return self.sessions.max_step_seconds
        is_trusted = self.is_authenticated or is_loopback(self.rest.host)
        return 0.0 if is_trusted else OPEN_STEP_SECONDS

    @model_validator(mode="after")
    def _names_agree(self) -> Settings:
        """Check that every name of a pool, a priority or a model refers to exactly one entry."""
        pools = [pool.name for pool in self.thread_pools]
        _reject_duplicates("thread_pools", pools)
        _reject_duplicates("models", [model.name for model in self.models])
        wanted = {f"priorities.{name}": entry.pool for name, entry in self.priorities.items()}
        if self.load_thread_pool is not None:
            wanted["load_thread_pool"] = self.load_thread_pool
        for key, pool in wanted.items():
            if pool not in pools:
                raise _not_one_of("thread_pools", pools, key, pool)
        if self.default_priority not in self.priorities:
            raise _not_one_of(
                "priorities", self.priorities, "default_priority", self.default_priority
            )
        default, longest = self.sessions.default_lease_seconds, self.sessions.max_lease_seconds
        if default > longest:
            raise WrongKeyError(
                "sessions.default_lease_seconds",
                f"must be at most sessions.max_lease_seconds, {longest}, got {default}",
            )
        unknown = sorted(set(self.ray.serve.models) - {model.name for model in self.models})
        if unknown and self.models:
            known = ", ".join(model.name for model in self.models)
            raise WrongKeyError(
                "ray.serve.models", f"must be names in models: {known}, got {', '.join(unknown)}"
            )
        if self.grpc.ssl_config_file is not None and self.tls.certificate_file is not None:
            raise WrongKeyError(
                "grpc.ssl_config_file", "must not be given with tls.certificate_file"
            )
        if self.sessions.graphs == "authenticated" and not self.is_authenticated:
            raise WrongKeyError(
                "sessions.graphs", "authenticated requires access.keys_file or access.jwt.key_file"
            )
        return self

    @model_validator(mode="after")
    def _engines_have_their_precisions(self) -> Settings:
        """Check the precision of the server and of each model: not every engine has all."""
        for model in (None, *self.models):
            self.engine_of(model)
        return self

    def engine_of(self, model: ModelSettings | None = None) -> ClusterEngine:
        """Return what computes the clusters of a model, or of sessions that are on none."""
        where = "" if model is None else f"models.{model.name}."
        return cluster_engine(ClusterEngine(self.engine, self.precision), model, where)

    @property
    def is_authenticated(self) -> bool:
        """Whether callers must show who they are."""
        return self.access.keys_file is not None or self.access.jwt.key_file is not None

    @property
    def graph_bringers(self) -> Graphs:
        """Who may bring graphs."""
        return self.sessions.graphs or ("authenticated" if self.is_authenticated else "anyone")


def _reject_duplicates(key: str, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise WrongKeyError(
            key, f"each must have a name of its own, got two entries named {', '.join(twice)}"
        )


def _not_one_of(table: str, names: Iterable[str], key: str, value: str) -> WrongKeyError:
    return WrongKeyError(key, f"must be one of {table}: {', '.join(names)}, got {value!r:.80}")


def load_settings(
    config_path: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    sources: Sources | None = None,
) -> Settings:
    """Read the settings; `flags` are nested values by key, as in the YAML file.

    If `config_path` is None, the default file is read if it exists. Only MODEL_NAME and
    MODEL_BASE_PATH are read from `environment`; the variables RUNSTEP_… are always read from the
    process. Errors name the source of a wrong value by `sources`.

    Raises NotFoundError if the file is missing, and InvalidArgumentError that names each wrong key.
    """
    environment = os.environ if environment is None else environment
    if sources is None:
        given = () if "models" in (flags or {}) else model_variables_of(environment)
        sources = settings_sources(config_path, model_variables=given)
    if config_path is not None and not config_path.is_file():
        raise NotFoundError(f"Configuration file {config_path} does not exist")
    if sources.file is not None:
        check_yaml(sources.file)
    values = dict(flags or {})
    if "models" not in values:
        container_model = model_of_container(environment)
        if container_model is not None:
            values["models"] = [container_model]
    return read_sources(Settings, values, sources, sources.file or Path(os.devnull))


def settings_sources(
    config_path: Path | None,
    flags: Mapping[str, str] | None = None,
    *,
    has_default_file: bool = True,
    model_variables: tuple[str, ...] = (),
) -> Sources:
    """Return the sources that `load_settings` reads; `flags` maps keys to flags.

    `model_variables` are those variables of TensorFlow Serving's image that are used.
    """
    default = DEFAULT_CONFIG_PATH if has_default_file and DEFAULT_CONFIG_PATH.is_file() else None
    variables = variables_of(Settings, os.environ)
    return Sources(config_path or default, flags or {}, variables, model_variables)


def with_parallelism(
    settings: Settings, session: int | None, inter_op: int | None, intra_op: int | None
) -> Settings:
    """Return the settings with these numbers of threads in the pool of the default priority.

    `inter_op` is the size of the pool, `intra_op` is the number of threads that may work on one
    kernel, and `session` sets both. 0 means one thread for each core; None leaves the setting
    unchanged.

    Raises InvalidArgumentError if a number is negative or too large, or if `session` is given
    together with another number.

    TF: tensorflow_serving/model_servers/main.cc (--tensorflow_session_parallelism)
    """
    given = {
        "tensorflow_session_parallelism": session,
        "tensorflow_inter_op_parallelism": inter_op,
        "tensorflow_intra_op_parallelism": intra_op,
    }
    for flag, number in given.items():
        if number is not None and number < 0:
            raise InvalidArgumentError(f"{flag} must not be negative, got {number}")
        if number is not None and number > MAX_THREADS:
            raise InvalidArgumentError(f"{flag} must be at most {MAX_THREADS}, got {number}")
    if session is not None and (inter_op is not None or intra_op is not None):
        raise InvalidArgumentError(
            "tensorflow_session_parallelism sets both numbers of threads; give either it or "
            "tensorflow_inter_op_parallelism and tensorflow_intra_op_parallelism"
        )
    threads = {
        "num_threads": session if inter_op is None else inter_op,
        "intra_op_threads": session if intra_op is None else intra_op,
    }
    update = {key: number for key, number in threads.items() if number is not None}
    name = settings.priorities[settings.default_priority].pool
    pools = tuple(
        pool.model_copy(update=update) if pool.name == name else pool
        for pool in settings.thread_pools
    )
    return settings.model_copy(update={"thread_pools": pools})
