import json
import re
from pathlib import Path

import pytest
import yaml

from runtime.foundation.errors import InvalidArgumentError, NotFoundError
from server.settings import Settings, load_settings, with_parallelism

CONFIG = Path(__file__).parents[3] / "configs" / "server.yaml"


def test_the_shipped_file_states_every_key_with_its_default():
    stated = yaml.safe_load(CONFIG.read_text())
    defaults = json.loads(Settings().model_dump_json())
    assert stated.pop("models") and defaults.pop("models") == []
    assert stated == defaults


def test_every_key_of_the_shipped_file_has_a_comment():
    for line in CONFIG.read_text().splitlines():
        key = re.match(r"\s*(- )?[a-z_]+: ?\S", line)
        assert key is None or "#" in line, line


@pytest.mark.parametrize(
    ("flags", "online"),
    [
        ((None, None, None), (0, 0)),
        ((3, None, None), (3, 3)),
        ((None, 2, 5), (2, 5)),
        ((None, 2, None), (2, 0)),
        ((None, None, 1), (0, 1)),
    ],
)
def test_parallelism_goes_to_the_pool_of_the_default_priority(flags, online):
    pool, background = with_parallelism(Settings(), *flags).thread_pools
    assert (pool.num_threads, pool.intra_op_threads) == online
    assert background == Settings().thread_pools[1]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((None, 1025, None), "^tensorflow_inter_op_parallelism must be at most 1024, got 1025$"),
        ((None, None, -2), "^tensorflow_intra_op_parallelism must not be negative, got -2$"),
        ((4, 2, None), "^tensorflow_session_parallelism sets both numbers of threads; give either"),
    ],
)
def test_parallelism_that_makes_no_sense(flags, message):
    with pytest.raises(InvalidArgumentError, match=message):
        with_parallelism(Settings(), *flags)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("engine: tensorrt", "engine: Input should be 'auto', 'onnxruntime' or 'openvino'"),
        (
            "precision: int8",
            "precision: Input should be 'float32', 'bfloat16', 'f32' or 'bf16'",
        ),
        (
            "precision: bf16",
            "  precision: bfloat16 requires engine openvino, got engine auto (file ",
        ),
        (
            "models: [{name: m, base_path: /m, precision: bfloat16}]",
            "  models.m.precision: bfloat16 requires engine openvino, got engine auto (file ",
        ),
        (
            "{engine: openvino, models: [{name: m, base_path: /m, engine: onnxruntime, "
            "precision: bf16}]}",
            "  models.m.precision: bfloat16 requires engine openvino, got engine onnxruntime (",
        ),
    ],
)
def test_an_engine_or_precision_that_there_is_not(text, message, tmp_path):
    path = tmp_path / "server.yaml"
    path.write_text(text)
    with pytest.raises(InvalidArgumentError, match=re.escape(message)):
        load_settings(path, environment={})


@pytest.mark.parametrize("word", ["off", '"off"'])
def test_off_needs_no_quotes_in_yaml(word: str, tmp_path: Path) -> None:
    path = tmp_path / "server.yaml"
    model = f"name: m, base_path: /m, clusters: {word}, batching: {{mode: {word}}}"
    path.write_text(f"clusters: {word}\nmodels: [{{{model}}}]\n")
    settings = load_settings(path)
    (found,) = settings.models
    assert found.batching is not None
    assert (settings.clusters, found.clusters, found.batching.mode) == ("off", "off", "off")


def test_flags_win_over_environment_over_file(tmp_path, monkeypatch):
    path = tmp_path / "server.yaml"
    path.write_text("rest: {port: 1, timeout_ms: 1, host: one}\n")
    monkeypatch.setenv("RUNSTEP_REST__PORT", "2")
    monkeypatch.setenv("RUNSTEP_REST__TIMEOUT_MS", "2")
    settings = load_settings(path, {"rest": {"port": 3}}, environment={})
    assert (settings.rest.port, settings.rest.timeout_ms, settings.rest.host) == (3, 2, "one")


def test_an_address_may_be_in_brackets():
    assert Settings(rest={"host": "[::]"}).rest.host == "::"


def test_lists_in_the_environment_are_json(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNSTEP_SESSIONS__ALLOWED_PATHS", '["/data"]')
    monkeypatch.chdir(tmp_path)
    assert load_settings(environment={}).sessions.allowed_paths == ("/data",)


def test_without_a_file_there_are_no_models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_settings(environment={}).models == ()


@pytest.mark.parametrize(
    ("environment", "name", "base_path"),
    [
        ({"MODEL_NAME": "m"}, "m", "/models/m"),
        ({"MODEL_BASE_PATH": "/srv"}, "model", "/srv/model"),
        ({"MODEL_NAME": "m", "MODEL_BASE_PATH": "/srv"}, "m", "/srv/m"),
    ],
)
def test_container_environment_replaces_models(environment, name, base_path):
    (model,) = load_settings(CONFIG, environment=environment).models
    assert (model.name, model.base_path) == (name, base_path)


def test_a_missing_file_is_named():
    with pytest.raises(NotFoundError, match=r"nowhere\.yaml does not exist"):
        load_settings(Path("nowhere.yaml"))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"rest": {"prot": 1}}, "rest.prot: There is no such key (did you mean port?), got 1 ("),
        (
            {"console": {"colour": 1}},
            "console.colour: There is no such key; there are enabled, got 1 (",
        ),
        ({"rset": {}}, "rset: There is no such key (did you mean rest?), got {} ("),
        (
            {"models": [{"name": "m", "base_path": "/m", "batching": {"modus": 1}}]},
            "models.0.batching.modus: There is no such key (did you mean mode?), got 1 (",
        ),
        (
            {"ray": {"serve": {"replicas": {"max": 2, "mim": 1}}}},
            "ray.serve.replicas.mim: There is no such key (did you mean min?), got 1 (",
        ),
        (
            {"models": {"name": "m", "base_path": "/m"}},
            "models: Input should be a list, got a map of name, base_path (",
        ),
        ({"models": ["m"]}, "models.0: Input should be a map of keys, got 'm' ("),
        ({"priorities": ["m"]}, "priorities: Input should be a map, got ['m'] ("),
        ({"models": [{"name": "m"}]}, "models.0.base_path: Field required ("),
        (
            {"rset": {"key": "secret"}},
            "(did you mean rest?), got a map of key (",
        ),
        ({"rset": [{"key": "secret"}]}, "rest?), got a list of 1 ("),
        (
            {"priorities": {"normal": "nope"}},
            "  priorities.normal: must be one of thread_pools: online, background, got 'nope' (",
        ),
        (
            {"priorities": {"normal": {"pool": "online", "queue_size": 0}}},
            "priorities.normal.queue_size: Input should be greater than or equal to 1",
        ),
        (
            {"priorities": {"normal": {"pool": "online", "timeout": 1}}},
            "priorities.normal.timeout: There is no such key (did you mean timeout_ms?), got 1 (",
        ),
        (
            {"default_priority": "x"},
            "  default_priority: must be one of priorities: normal, low, got 'x' (",
        ),
        (
            {"load_thread_pool": "x"},
            "  load_thread_pool: must be one of thread_pools: online, background, got 'x' (",
        ),
        (
            {"thread_pools": [{"name": "a"}, {"name": "a"}]},
            "  thread_pools: each must have a name of its own, got two entries named a (",
        ),
        (
            {"sessions": {"default_lease_seconds": 1e6}},
            "  sessions.default_lease_seconds: must be at most sessions.max_lease_seconds, "
            "86400.0, got 1000000.0 (",
        ),
        (
            {"sessions": {"graphs": "authenticated"}},
            "  sessions.graphs: authenticated requires access.keys_file or access.jwt.key_file (",
        ),
        (
            {"access": {"jwt": {"algorithms": ["HS256", "ES256"]}}},
            "  access.jwt: algorithms has HS…, which takes a secret, and those of public keys (",
        ),
        ({"access": {"jwt": {"algorithms": ["none"]}}}, "access.jwt.algorithms.0"),
        ({"access": {"anonymous_roles": ["admin"]}}, "access.anonymous_roles.0"),
        (
            {"rest": {"metrics_path": "/docs"}},
            "  rest: metrics_path /docs is that of another",
        ),
        (
            {"processes": "many"},
            "processes: must be a number from 1 to 64, or auto, got 'many'",
        ),
        (
            {"ray": {"serve": {"models": {"digit": {}}}}},
            "  ray.serve.models: must be names in models: digits, half_plus_two, counter, "
            "got digit (",
        ),
        (
            {"ray": {"serve": {"replicas": {"min": 3, "max": 2}}}},
            "  ray.serve.replicas: min is 3 and max is 2; min must not exceed max (",
        ),
        (
            {"grpc": {"ssl_config_file": "s"}, "tls": {"certificate_file": "c", "key_file": "k"}},
            "  grpc.ssl_config_file: must not be given with tls.certificate_file (",
        ),
        (
            {"tls": {"key_file": "k"}},
            "  tls: certificate_file and key_file must be given ",
        ),
        ({"tls": {"client_ca_file": "a"}}, "client_ca_file requires certificate_file"),
    ],
)
def test_wrong_settings_name_the_key(flags, message):
    with pytest.raises(InvalidArgumentError, match=re.escape(message)) as raised:
        load_settings(CONFIG, flags, environment={})
    assert not re.search("Value error|secret'|base_path'", raised.value.message)


@pytest.mark.parametrize(
    ("host", "seconds", "longest"),
    [
        ("127.0.0.1", None, 0),
        ("localhost", None, 0),
        ("::1", None, 0),
        ("0.0.0.0", None, 300),
        ("example.org", None, 300),
        ("127.0.0.1", 5, 5),
        ("0.0.0.0", 0, 0),
    ],
)
def test_the_longest_step_depends_on_who_can_reach_the_server(host, seconds, longest):
    flags = {"rest": {"host": host}, "sessions": {"max_step_seconds": seconds}}
    assert load_settings(CONFIG, flags, environment={}).step_seconds == longest


def test_steps_of_known_callers_have_no_longest_time():
    assert Settings(rest={"host": "0.0.0.0"}, access={"keys_file": "k"}).step_seconds == 0


@pytest.mark.parametrize(
    ("settings", "bringers"),
    [
        ({}, "anyone"),
        ({"access": {"keys_file": "k"}}, "authenticated"),
        ({"access": {"jwt": {"key_file": "k"}}}, "authenticated"),
        ({"access": {"keys_file": "k"}, "sessions": {"graphs": "anyone"}}, "anyone"),
        ({"sessions": {"graphs": "none"}}, "none"),
    ],
)
def test_who_may_bring_graphs(settings, bringers):
    assert Settings(**settings).graph_bringers == bringers


@pytest.mark.parametrize("port", [0, 65535, "free", "8501"])
def test_ports(port):
    assert str(Settings(rest={"port": port}).rest.port) == str(port)
