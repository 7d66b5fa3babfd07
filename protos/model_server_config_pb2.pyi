from google.protobuf import any_pb2 as _any_pb2
from google.protobuf import wrappers_pb2 as _wrappers_pb2
from protos import config_pb2 as _config_pb2
from protos import tensor_pb2 as _tensor_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ModelType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MODEL_TYPE_UNSPECIFIED: _ClassVar[ModelType]
    TENSORFLOW: _ClassVar[ModelType]
    OTHER: _ClassVar[ModelType]
MODEL_TYPE_UNSPECIFIED: ModelType
TENSORFLOW: ModelType
OTHER: ModelType

class PerTaskSamplingConfig(_message.Message):
    __slots__ = ("dc", "task_index", "sampling_rate")
    DC_FIELD_NUMBER: _ClassVar[int]
    TASK_INDEX_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_RATE_FIELD_NUMBER: _ClassVar[int]
    dc: str
    task_index: int
    sampling_rate: float
    def __init__(self, dc: _Optional[str] = ..., task_index: _Optional[int] = ..., sampling_rate: _Optional[float] = ...) -> None: ...

class SamplingConfig(_message.Message):
    __slots__ = ("sampling_rate", "attributes", "per_task_sampling_configs")
    class Attributes(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ATTR_DEFAULT: _ClassVar[SamplingConfig.Attributes]
        ATTR_REQUEST_ORIGIN: _ClassVar[SamplingConfig.Attributes]
        ATTR_REQUEST_CRITICALITY: _ClassVar[SamplingConfig.Attributes]
    ATTR_DEFAULT: SamplingConfig.Attributes
    ATTR_REQUEST_ORIGIN: SamplingConfig.Attributes
    ATTR_REQUEST_CRITICALITY: SamplingConfig.Attributes
    SAMPLING_RATE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    PER_TASK_SAMPLING_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    sampling_rate: float
    attributes: int
    per_task_sampling_configs: _containers.RepeatedCompositeFieldContainer[PerTaskSamplingConfig]
    def __init__(self, sampling_rate: _Optional[float] = ..., attributes: _Optional[int] = ..., per_task_sampling_configs: _Optional[_Iterable[_Union[PerTaskSamplingConfig, _Mapping]]] = ...) -> None: ...

class LoggingConfig(_message.Message):
    __slots__ = ("log_collector_config", "sampling_config", "custom_logging_config")
    LOG_COLLECTOR_CONFIG_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_CONFIG_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_LOGGING_CONFIG_FIELD_NUMBER: _ClassVar[int]
    log_collector_config: LogCollectorConfig
    sampling_config: SamplingConfig
    custom_logging_config: _any_pb2.Any
    def __init__(self, log_collector_config: _Optional[_Union[LogCollectorConfig, _Mapping]] = ..., sampling_config: _Optional[_Union[SamplingConfig, _Mapping]] = ..., custom_logging_config: _Optional[_Union[_any_pb2.Any, _Mapping]] = ...) -> None: ...

class PlatformConfig(_message.Message):
    __slots__ = ("source_adapter_config",)
    SOURCE_ADAPTER_CONFIG_FIELD_NUMBER: _ClassVar[int]
    source_adapter_config: _any_pb2.Any
    def __init__(self, source_adapter_config: _Optional[_Union[_any_pb2.Any, _Mapping]] = ...) -> None: ...

class PlatformConfigMap(_message.Message):
    __slots__ = ("platform_configs",)
    class PlatformConfigsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: PlatformConfig
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[PlatformConfig, _Mapping]] = ...) -> None: ...
    PLATFORM_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    platform_configs: _containers.MessageMap[str, PlatformConfig]
    def __init__(self, platform_configs: _Optional[_Mapping[str, PlatformConfig]] = ...) -> None: ...

class SSLConfig(_message.Message):
    __slots__ = ("server_key", "server_cert", "custom_ca", "client_verify")
    SERVER_KEY_FIELD_NUMBER: _ClassVar[int]
    SERVER_CERT_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_CA_FIELD_NUMBER: _ClassVar[int]
    CLIENT_VERIFY_FIELD_NUMBER: _ClassVar[int]
    server_key: str
    server_cert: str
    custom_ca: str
    client_verify: bool
    def __init__(self, server_key: _Optional[str] = ..., server_cert: _Optional[str] = ..., custom_ca: _Optional[str] = ..., client_verify: bool = ...) -> None: ...

class PrometheusConfig(_message.Message):
    __slots__ = ("enable", "path")
    ENABLE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    enable: bool
    path: str
    def __init__(self, enable: bool = ..., path: _Optional[str] = ...) -> None: ...

class MonitoringConfig(_message.Message):
    __slots__ = ("prometheus_config",)
    PROMETHEUS_CONFIG_FIELD_NUMBER: _ClassVar[int]
    prometheus_config: PrometheusConfig
    def __init__(self, prometheus_config: _Optional[_Union[PrometheusConfig, _Mapping]] = ...) -> None: ...

class LogCollectorConfig(_message.Message):
    __slots__ = ("type", "filename_prefix")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    FILENAME_PREFIX_FIELD_NUMBER: _ClassVar[int]
    type: str
    filename_prefix: str
    def __init__(self, type: _Optional[str] = ..., filename_prefix: _Optional[str] = ...) -> None: ...

class FileSystemStoragePathSourceConfig(_message.Message):
    __slots__ = ("file_system_poll_wait_seconds", "fail_if_zero_versions_at_startup", "servables", "servable_versions_always_present")
    class ServableVersionPolicy(_message.Message):
        __slots__ = ("latest", "all", "specific")
        class Latest(_message.Message):
            __slots__ = ("num_versions",)
            NUM_VERSIONS_FIELD_NUMBER: _ClassVar[int]
            num_versions: int
            def __init__(self, num_versions: _Optional[int] = ...) -> None: ...
        class All(_message.Message):
            __slots__ = ()
            def __init__(self) -> None: ...
        class Specific(_message.Message):
            __slots__ = ("versions",)
            VERSIONS_FIELD_NUMBER: _ClassVar[int]
            versions: _containers.RepeatedScalarFieldContainer[int]
            def __init__(self, versions: _Optional[_Iterable[int]] = ...) -> None: ...
        LATEST_FIELD_NUMBER: _ClassVar[int]
        ALL_FIELD_NUMBER: _ClassVar[int]
        SPECIFIC_FIELD_NUMBER: _ClassVar[int]
        latest: FileSystemStoragePathSourceConfig.ServableVersionPolicy.Latest
        all: FileSystemStoragePathSourceConfig.ServableVersionPolicy.All
        specific: FileSystemStoragePathSourceConfig.ServableVersionPolicy.Specific
        def __init__(self, latest: _Optional[_Union[FileSystemStoragePathSourceConfig.ServableVersionPolicy.Latest, _Mapping]] = ..., all: _Optional[_Union[FileSystemStoragePathSourceConfig.ServableVersionPolicy.All, _Mapping]] = ..., specific: _Optional[_Union[FileSystemStoragePathSourceConfig.ServableVersionPolicy.Specific, _Mapping]] = ...) -> None: ...
    class ServableToMonitor(_message.Message):
        __slots__ = ("servable_name", "base_path", "servable_version_policy")
        SERVABLE_NAME_FIELD_NUMBER: _ClassVar[int]
        BASE_PATH_FIELD_NUMBER: _ClassVar[int]
        SERVABLE_VERSION_POLICY_FIELD_NUMBER: _ClassVar[int]
        servable_name: str
        base_path: str
        servable_version_policy: FileSystemStoragePathSourceConfig.ServableVersionPolicy
        def __init__(self, servable_name: _Optional[str] = ..., base_path: _Optional[str] = ..., servable_version_policy: _Optional[_Union[FileSystemStoragePathSourceConfig.ServableVersionPolicy, _Mapping]] = ...) -> None: ...
    FILE_SYSTEM_POLL_WAIT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    FAIL_IF_ZERO_VERSIONS_AT_STARTUP_FIELD_NUMBER: _ClassVar[int]
    SERVABLES_FIELD_NUMBER: _ClassVar[int]
    SERVABLE_VERSIONS_ALWAYS_PRESENT_FIELD_NUMBER: _ClassVar[int]
    file_system_poll_wait_seconds: int
    fail_if_zero_versions_at_startup: bool
    servables: _containers.RepeatedCompositeFieldContainer[FileSystemStoragePathSourceConfig.ServableToMonitor]
    servable_versions_always_present: bool
    def __init__(self, file_system_poll_wait_seconds: _Optional[int] = ..., fail_if_zero_versions_at_startup: bool = ..., servables: _Optional[_Iterable[_Union[FileSystemStoragePathSourceConfig.ServableToMonitor, _Mapping]]] = ..., servable_versions_always_present: bool = ...) -> None: ...

class ModelConfig(_message.Message):
    __slots__ = ("name", "base_path", "model_type", "model_platform", "logging_config", "model_version_policy", "version_labels")
    class VersionLabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    BASE_PATH_FIELD_NUMBER: _ClassVar[int]
    MODEL_TYPE_FIELD_NUMBER: _ClassVar[int]
    MODEL_PLATFORM_FIELD_NUMBER: _ClassVar[int]
    LOGGING_CONFIG_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_POLICY_FIELD_NUMBER: _ClassVar[int]
    VERSION_LABELS_FIELD_NUMBER: _ClassVar[int]
    name: str
    base_path: str
    model_type: ModelType
    model_platform: str
    logging_config: LoggingConfig
    model_version_policy: FileSystemStoragePathSourceConfig.ServableVersionPolicy
    version_labels: _containers.ScalarMap[str, int]
    def __init__(self, name: _Optional[str] = ..., base_path: _Optional[str] = ..., model_type: _Optional[_Union[ModelType, str]] = ..., model_platform: _Optional[str] = ..., logging_config: _Optional[_Union[LoggingConfig, _Mapping]] = ..., model_version_policy: _Optional[_Union[FileSystemStoragePathSourceConfig.ServableVersionPolicy, _Mapping]] = ..., version_labels: _Optional[_Mapping[str, int]] = ...) -> None: ...

class ModelConfigList(_message.Message):
    __slots__ = ("config",)
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    config: _containers.RepeatedCompositeFieldContainer[ModelConfig]
    def __init__(self, config: _Optional[_Iterable[_Union[ModelConfig, _Mapping]]] = ...) -> None: ...

class ModelServerConfig(_message.Message):
    __slots__ = ("model_config_list", "custom_model_config")
    MODEL_CONFIG_LIST_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_MODEL_CONFIG_FIELD_NUMBER: _ClassVar[int]
    model_config_list: ModelConfigList
    custom_model_config: _any_pb2.Any
    def __init__(self, model_config_list: _Optional[_Union[ModelConfigList, _Mapping]] = ..., custom_model_config: _Optional[_Union[_any_pb2.Any, _Mapping]] = ...) -> None: ...

class ModelWarmupOptions(_message.Message):
    __slots__ = ("num_request_iterations", "num_model_warmup_threads", "model_name", "model_version", "enable_all_batch_sizes_warmup")
    NUM_REQUEST_ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    NUM_MODEL_WARMUP_THREADS_FIELD_NUMBER: _ClassVar[int]
    MODEL_NAME_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    ENABLE_ALL_BATCH_SIZES_WARMUP_FIELD_NUMBER: _ClassVar[int]
    num_request_iterations: _wrappers_pb2.Int32Value
    num_model_warmup_threads: _wrappers_pb2.Int32Value
    model_name: str
    model_version: int
    enable_all_batch_sizes_warmup: bool
    def __init__(self, num_request_iterations: _Optional[_Union[_wrappers_pb2.Int32Value, _Mapping]] = ..., num_model_warmup_threads: _Optional[_Union[_wrappers_pb2.Int32Value, _Mapping]] = ..., model_name: _Optional[str] = ..., model_version: _Optional[int] = ..., enable_all_batch_sizes_warmup: bool = ...) -> None: ...

class SessionBundleConfig(_message.Message):
    __slots__ = ("session_target", "session_config", "batching_parameters", "session_run_load_threadpool_index", "experimental_transient_ram_bytes_during_load", "saved_model_tags", "in_graph_batching_parameters", "experimental_fixed_input_tensors", "enable_model_warmup", "model_warmup_options", "enable_session_metadata", "remove_unused_fields_from_bundle_metagraph", "prefer_tflite_model", "resource_estimation_uses_validation_result", "num_tflite_interpreters", "num_tflite_interpreters_per_pool", "num_tflite_pools", "wrap_session_with_no_threading_params", "enable_per_model_batching_params", "enable_saved_model_config", "mixed_precision")
    SESSION_TARGET_FIELD_NUMBER: _ClassVar[int]
    SESSION_CONFIG_FIELD_NUMBER: _ClassVar[int]
    BATCHING_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    SESSION_RUN_LOAD_THREADPOOL_INDEX_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENTAL_TRANSIENT_RAM_BYTES_DURING_LOAD_FIELD_NUMBER: _ClassVar[int]
    SAVED_MODEL_TAGS_FIELD_NUMBER: _ClassVar[int]
    IN_GRAPH_BATCHING_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENTAL_FIXED_INPUT_TENSORS_FIELD_NUMBER: _ClassVar[int]
    ENABLE_MODEL_WARMUP_FIELD_NUMBER: _ClassVar[int]
    MODEL_WARMUP_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    ENABLE_SESSION_METADATA_FIELD_NUMBER: _ClassVar[int]
    REMOVE_UNUSED_FIELDS_FROM_BUNDLE_METAGRAPH_FIELD_NUMBER: _ClassVar[int]
    PREFER_TFLITE_MODEL_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_ESTIMATION_USES_VALIDATION_RESULT_FIELD_NUMBER: _ClassVar[int]
    NUM_TFLITE_INTERPRETERS_FIELD_NUMBER: _ClassVar[int]
    NUM_TFLITE_INTERPRETERS_PER_POOL_FIELD_NUMBER: _ClassVar[int]
    NUM_TFLITE_POOLS_FIELD_NUMBER: _ClassVar[int]
    WRAP_SESSION_WITH_NO_THREADING_PARAMS_FIELD_NUMBER: _ClassVar[int]
    ENABLE_PER_MODEL_BATCHING_PARAMS_FIELD_NUMBER: _ClassVar[int]
    ENABLE_SAVED_MODEL_CONFIG_FIELD_NUMBER: _ClassVar[int]
    MIXED_PRECISION_FIELD_NUMBER: _ClassVar[int]
    session_target: str
    session_config: _config_pb2.ConfigProto
    batching_parameters: BatchingParameters
    session_run_load_threadpool_index: _wrappers_pb2.Int32Value
    experimental_transient_ram_bytes_during_load: int
    saved_model_tags: _containers.RepeatedScalarFieldContainer[str]
    in_graph_batching_parameters: _config_pb2.BatchingOptions
    experimental_fixed_input_tensors: _containers.RepeatedCompositeFieldContainer[_tensor_pb2.NamedTensorProto]
    enable_model_warmup: bool
    model_warmup_options: ModelWarmupOptions
    enable_session_metadata: bool
    remove_unused_fields_from_bundle_metagraph: bool
    prefer_tflite_model: bool
    resource_estimation_uses_validation_result: bool
    num_tflite_interpreters: int
    num_tflite_interpreters_per_pool: int
    num_tflite_pools: int
    wrap_session_with_no_threading_params: bool
    enable_per_model_batching_params: bool
    enable_saved_model_config: bool
    mixed_precision: str
    def __init__(self, session_target: _Optional[str] = ..., session_config: _Optional[_Union[_config_pb2.ConfigProto, _Mapping]] = ..., batching_parameters: _Optional[_Union[BatchingParameters, _Mapping]] = ..., session_run_load_threadpool_index: _Optional[_Union[_wrappers_pb2.Int32Value, _Mapping]] = ..., experimental_transient_ram_bytes_during_load: _Optional[int] = ..., saved_model_tags: _Optional[_Iterable[str]] = ..., in_graph_batching_parameters: _Optional[_Union[_config_pb2.BatchingOptions, _Mapping]] = ..., experimental_fixed_input_tensors: _Optional[_Iterable[_Union[_tensor_pb2.NamedTensorProto, _Mapping]]] = ..., enable_model_warmup: bool = ..., model_warmup_options: _Optional[_Union[ModelWarmupOptions, _Mapping]] = ..., enable_session_metadata: bool = ..., remove_unused_fields_from_bundle_metagraph: bool = ..., prefer_tflite_model: bool = ..., resource_estimation_uses_validation_result: bool = ..., num_tflite_interpreters: _Optional[int] = ..., num_tflite_interpreters_per_pool: _Optional[int] = ..., num_tflite_pools: _Optional[int] = ..., wrap_session_with_no_threading_params: bool = ..., enable_per_model_batching_params: bool = ..., enable_saved_model_config: bool = ..., mixed_precision: _Optional[str] = ...) -> None: ...

class BatchingParameters(_message.Message):
    __slots__ = ("max_batch_size", "batch_timeout_micros", "max_enqueued_batches", "num_batch_threads", "thread_pool_name", "allowed_batch_sizes", "pad_variable_length_inputs", "enable_large_batch_splitting", "max_execution_batch_size")
    MAX_BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    BATCH_TIMEOUT_MICROS_FIELD_NUMBER: _ClassVar[int]
    MAX_ENQUEUED_BATCHES_FIELD_NUMBER: _ClassVar[int]
    NUM_BATCH_THREADS_FIELD_NUMBER: _ClassVar[int]
    THREAD_POOL_NAME_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_BATCH_SIZES_FIELD_NUMBER: _ClassVar[int]
    PAD_VARIABLE_LENGTH_INPUTS_FIELD_NUMBER: _ClassVar[int]
    ENABLE_LARGE_BATCH_SPLITTING_FIELD_NUMBER: _ClassVar[int]
    MAX_EXECUTION_BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    max_batch_size: _wrappers_pb2.Int64Value
    batch_timeout_micros: _wrappers_pb2.Int64Value
    max_enqueued_batches: _wrappers_pb2.Int64Value
    num_batch_threads: _wrappers_pb2.Int64Value
    thread_pool_name: _wrappers_pb2.StringValue
    allowed_batch_sizes: _containers.RepeatedScalarFieldContainer[int]
    pad_variable_length_inputs: bool
    enable_large_batch_splitting: _wrappers_pb2.BoolValue
    max_execution_batch_size: _wrappers_pb2.Int64Value
    def __init__(self, max_batch_size: _Optional[_Union[_wrappers_pb2.Int64Value, _Mapping]] = ..., batch_timeout_micros: _Optional[_Union[_wrappers_pb2.Int64Value, _Mapping]] = ..., max_enqueued_batches: _Optional[_Union[_wrappers_pb2.Int64Value, _Mapping]] = ..., num_batch_threads: _Optional[_Union[_wrappers_pb2.Int64Value, _Mapping]] = ..., thread_pool_name: _Optional[_Union[_wrappers_pb2.StringValue, _Mapping]] = ..., allowed_batch_sizes: _Optional[_Iterable[int]] = ..., pad_variable_length_inputs: bool = ..., enable_large_batch_splitting: _Optional[_Union[_wrappers_pb2.BoolValue, _Mapping]] = ..., max_execution_batch_size: _Optional[_Union[_wrappers_pb2.Int64Value, _Mapping]] = ...) -> None: ...
