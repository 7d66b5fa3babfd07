"""The flags of `tensorflow_model_server`, and what becomes of each here.

`runstep serve` and the executable `tensorflow_model_server` take these flags, and the table of
docs/migration.md is generated from them (tools/write/migration.py).

TF: tensorflow_serving/model_servers/main.cc, server.h and server.cc, release 2.20
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["bool", "int32", "int64", "float", "string"]
# A flag without effect is accepted and logged once. A refused flag ends the start.
Treatment = Literal["honoured", "no effect", "refused"]


class Flag(NamedTuple):
    """One flag. `default` is TensorFlow Serving's, as text.

    `note` says what an honoured flag sets; why another has no effect, which is appended to "has no
    effect here, because "; or why it is refused, which is appended to "is refused, because ".
    `setting` is the key of configs/server.yaml that an honoured flag sets, "" if it is none alone.
    """

    name: str
    kind: Kind
    default: str
    treatment: Treatment
    note: str
    setting: str = ""


_CPUS = "4 × CPUs"
_NO_GPU = "there is no GPU device"
_NO_LITE = "there is no TensorFlow Lite interpreter: saved_model.pb is loaded"
_NO_XLA = "there is no XLA compiler: the operations of its clusters run one by one"

FLAGS: tuple[Flag, ...] = (
    Flag("port", "int32", "8500", "honoured", "gRPC port; 0: none", "grpc.port"),
    Flag("grpc_socket_path", "string", "", "honoured", "a Unix socket for gRPC too", "grpc.socket_path"),
    Flag("rest_api_port", "int32", "0", "honoured", "HTTP port; 0: none", "rest.port"),
    Flag("rest_api_num_threads", "int32", _CPUS, "honoured",
         "threads that read and write large HTTP and gRPC bodies; steps run on thread_pools", "rest.codec_threads"),
    Flag("rest_api_timeout_in_ms", "int32", "30000", "honoured", "deadline of predict, classify and regress", "rest.timeout_ms"),
    Flag("rest_api_enable_cors_support", "bool", "false", "honoured", "web pages of any origin may call the models", "rest.cors"),
    Flag("enable_batching", "bool", "false", "honoured", "steps of several requests run as one", "batching.enabled"),
    Flag("allow_version_labels_for_unavailable_models", "bool", "false", "honoured",
         "new labels may point at versions that do not serve yet", "model_loading.allow_labels_for_unavailable"),
    Flag("batching_parameters_file", "string", "", "honoured", "text BatchingParameters", "batching.parameters_file"),
    Flag("enable_per_model_batching_parameters", "bool", "false", "honoured",
         "batching_params.pbtxt of each model replaces them", "batching.per_model_parameters"),
    Flag("model_config_file", "string", "", "honoured", "text ModelServerConfig: several models", "model_config_file"),
    Flag("model_config_file_poll_wait_seconds", "int32", "0", "honoured", "read that file again this often; 0: never", "model_config_file_poll_seconds"),
    Flag("model_name", "string", "default", "honoured", "the name of the one model; without it $MODEL_NAME", "models"),
    Flag("model_base_path", "string", "", "honoured", "its folder of numbered versions; without it $MODEL_BASE_PATH/$MODEL_NAME", "models"),
    Flag("num_load_threads", "int32", "0", "honoured", "versions that load at the same time; 0: one", "model_loading.num_threads"),
    Flag("num_unload_threads", "int32", "0", "no effect",
         "the low-priority threads that load (--num_load_threads) unload as well, and requests never wait for them"),
    Flag("max_num_load_retries", "int32", "5", "honoured", "attempts after a failed load", "model_loading.max_retries"),
    Flag("load_retry_interval_micros", "int64", "60000000", "honoured", "between two attempts; negative: none", "model_loading.retry_seconds"),
    Flag("file_system_poll_wait_seconds", "int32", "1", "honoured", "look for versions this often; 0: once, negative: never", "model_poll_seconds"),
    Flag("flush_filesystem_caches", "bool", "true", "no effect",
         "files are read through the system's page cache alone, and the server keeps no cache of its own"),
    Flag("tensorflow_session_parallelism", "int64", "0", "honoured", "threads of the default priority's pool, and for each kernel", "thread_pools"),
    Flag("tensorflow_session_config_file", "string", "", "honoured", "text ConfigProto for the sessions of served models", "session_config_file"),
    Flag("tensorflow_intra_op_parallelism", "int64", "0", "honoured", "threads that may work on one kernel there", "thread_pools"),
    Flag("tensorflow_inter_op_parallelism", "int64", "0", "honoured", "threads of the default priority's pool", "thread_pools"),
    Flag("use_alts_credentials", "bool", "false", "refused",
         "ALTS exists only between machines of Google Cloud; use --ssl_config_file"),
    Flag("ssl_config_file", "string", "", "honoured", "text SSLConfig: TLS of the gRPC ports", "grpc.ssl_config_file"),
    Flag("platform_config_file", "string", "", "refused",
         "there are no source adapters that it could configure; give its session_config by --tensorflow_session_config_file, "
         "its batching_parameters by --batching_parameters_file, and the rest by the flags of their names"),
    Flag("per_process_gpu_memory_fraction", "float", "0", "no effect", _NO_GPU),
    Flag("saved_model_tags", "string", "serve", "honoured", "comma-separated tags of the meta graph to load", "model_loading.tags"),
    Flag("grpc_channel_arguments", "string", "", "honoured", "comma-separated name=value, added to gRPC's options", "grpc.channel_arguments"),
    Flag("grpc_max_threads", "int32", _CPUS, "no effect",
         "one event loop receives all gRPC messages; what runs at the same time is limited by thread_pools and grpc.max_concurrent_streams"),
    Flag("enable_model_warmup", "bool", "true", "honoured", "replay a version's recorded requests before it serves", "model_loading.warmup"),
    Flag("num_request_iterations_for_warmup", "int32", "0", "honoured", "how often each of them is replayed; 0: once", "model_loading.warmup_iterations"),
    Flag("version", "bool", "false", "honoured", "print the version and exit"),
    Flag("monitoring_config_file", "string", "", "honoured", "text MonitoringConfig: the path of the metrics, or none", "rest.metrics_path"),
    Flag("remove_unused_fields_from_bundle_metagraph", "bool", "true", "no effect",
         "sessions that clients open on a model use its graph, so that no field of it is unused"),
    Flag("prefer_tflite_model", "bool", "false", "no effect", _NO_LITE),
    Flag("num_tflite_pools", "int32", "CPUs", "no effect", _NO_LITE),
    Flag("num_tflite_interpreters_per_pool", "int32", "1", "no effect", _NO_LITE),
    Flag("enable_signature_method_name_check", "bool", "false", "honoured",
         "classify and regress require signatures with their method name", "model_loading.check_method_names"),
    Flag("xla_cpu_compilation_enabled", "bool", "false", "no effect", _NO_XLA),
    Flag("xla_gpu_compilation_enabled", "bool", "false", "no effect", _NO_XLA),
    Flag("enable_profiler", "bool", "true", "no effect",
         "there is no profiler service: a step is traced by RunOptions.trace_level, or by `runstep run --trace`"),
    Flag("thread_pool_factory_config_file", "string", "", "refused",
         "it names a factory that is compiled into TensorFlow Serving; configure thread_pools and priorities"),
    Flag("mixed_precision", "string", "", "no effect",
         "there is no graph rewrite to bfloat16: every operation computes in the types of its graph"),
    Flag("skip_initialize_tpu", "bool", "false", "no effect", "there is no TPU device"),
    Flag("enable_grpc_healthcheck_service", "bool", "false", "no effect",
         "the gRPC health service always answers"),
    Flag("enable_serialization_as_tensor_content", "bool", "false", "honoured",
         "gRPC predictions carry tensor_content", "grpc.tensor_content"),
)  # fmt: skip
