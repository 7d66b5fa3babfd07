"""The manifests in configs/: valid, in agreement with each other and with the server."""

from __future__ import annotations

import argparse
import importlib.util
import pathlib
import re
from typing import Any

import kubernetes_validate
import pytest
import yaml

from runstep.client.session_calls import AFFINITY_HEADER
from server.commands.flag_arguments import add_flags
from server.commands.flag_values import FlagValues
from server.commands.serve import with_threads
from server.models.model_config import read_model_config_file
from server.settings import Settings, load_settings
from server.settings_sections.ray_serve import ReplicaRange
from server.settings_sources import read_values
from tests.integration.rest_server import RestServer, with_server

CONFIGS = pathlib.Path(__file__).parents[2] / "configs"
DOCKERFILE = (CONFIGS.parent / "Dockerfile").read_text()
VERSIONS = ("1.29", "1.33", "1.37")


def documents(folder: str) -> list[dict[str, Any]]:
    return [
        document
        for path in sorted((CONFIGS / folder).glob("*.yaml"))
        for document in yaml.safe_load_all(path.read_text())
    ]


KUBERNETES, KSERVE = documents("kubernetes"), documents("kserve")
SESSIONS, KUBERAY = documents("kubernetes/sessions"), documents("kuberay")
ALL = KUBERNETES + KSERVE + SESSIONS + KUBERAY
# Kinds that Kubernetes itself does not have: kubernetes-validate knows no schema of theirs.
FOREIGN = ("gateway.", "ray.io", "serving.kserve.io")
INGRESS = next(each for each in SESSIONS if each["kind"] == "Ingress")


def one(kind: str, name: str = "runstep") -> Any:
    (found,) = (each for each in ALL if each["kind"] == kind and each["metadata"]["name"] == name)
    return found


def pod() -> Any:
    return one("Deployment")["spec"]["template"]


def container() -> Any:
    (found,) = pod()["spec"]["containers"]
    return found


def runtime_container() -> Any:
    (found,) = one("ServingRuntime")["spec"]["containers"]
    return found


@pytest.fixture
def settings(tmp_path: pathlib.Path) -> Settings:
    """The settings of a pod, read with the variables of the image."""
    path = tmp_path / "server.yaml"
    path.write_text(one("ConfigMap")["data"]["server.yaml"])
    return load_settings(path, environment={"MODEL_NAME": "model", "MODEL_BASE_PATH": "/models"})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("document", [*KUBERNETES, INGRESS], ids=lambda each: each["kind"])
def test_manifests_are_valid(document: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(document, version, strict=True)


def test_a_wrong_key_would_be_found() -> None:
    wrong = one("Deployment") | {"spec": one("Deployment")["spec"] | {"replica": 2}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_files_and_the_page_say_which_kinds_no_schema_checks() -> None:
    page = " ".join((CONFIGS.parent / "docs" / "kubernetes.md").read_text().split())
    for path in CONFIGS.rglob("*.yaml"):
        text = path.read_text()
        kinds = [
            each["kind"]
            for each in yaml.safe_load_all(text)
            if str(each.get("apiVersion", "")).startswith(FOREIGN)
        ]
        head = " ".join(re.findall(r"^#(.*)$", text.partition("apiVersion:")[0], re.M))
        if kinds and path.parent.name != "kserve":
            assert "No schema of" in " ".join(head.split()), path
            assert all(f"`{kind}`" in page for kind in kinds), kinds
    assert "annotations are not: only the controller knows them" in " ".join(
        (CONFIGS / "kubernetes" / "sessions" / "ingress.yaml").read_text().replace("#", "").split()
    )


def test_the_autoscaler_decides_the_number_of_pods() -> None:
    scaler = one("HorizontalPodAutoscaler")["spec"]
    assert "replicas" not in one("Deployment")["spec"]
    target = scaler["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Deployment", one("Deployment")["metadata"]["name"])
    assert 2 <= scaler["minReplicas"] < scaler["maxReplicas"]
    (metric,) = scaler["metrics"]
    assert metric["resource"]["name"] in container()["resources"]["requests"]
    assert one("PodDisruptionBudget")["spec"]["maxUnavailable"] < scaler["minReplicas"]


def test_gateways_send_a_session_s_requests_to_one_pod() -> None:
    variable = f"$http_{AFFINITY_HEADER.lower().replace('-', '_')}"
    assert INGRESS["metadata"]["annotations"]["nginx.org/lb-method"] == (
        f"hash {variable} consistent"
    )
    (rule,) = INGRESS["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    service = one("Service")
    assert path["backend"]["service"]["name"] == service["metadata"]["name"]
    assert path["backend"]["service"]["port"]["name"] in [
        port["name"] for port in service["spec"]["ports"]
    ]
    policy = one("BackendTrafficPolicy")["spec"]
    assert policy["loadBalancer"]["consistentHash"]["header"] == {"name": AFFINITY_HEADER}
    routes = [one(each["kind"], each["name"]) for each in policy["targetRefs"]]
    listeners = {each["name"]: each["port"] for each in one("Gateway")["spec"]["listeners"]}
    for route in routes:
        (parent,), (route_rule,) = route["spec"]["parentRefs"], route["spec"]["rules"]
        (backend,) = route_rule["backendRefs"]
        assert backend["name"] == service["metadata"]["name"]
        assert backend["port"] == listeners[parent["sectionName"]]
        assert backend["port"] in [port["port"] for port in service["spec"]["ports"]]


def ray_pods() -> list[Any]:
    cluster = one("RayService")["spec"]["rayClusterConfig"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    return [group["template"]["spec"] for group in groups]


def test_the_pods_of_the_ray_service_are_valid() -> None:
    for spec in ray_pods():
        wrapped = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
        kubernetes_validate.validate(wrapped, VERSIONS[-1], strict=True)
        mounted = {each["name"] for each in spec["containers"][0]["volumeMounts"]}
        assert mounted == {each["name"] for each in spec["volumes"]}


def test_the_application_of_the_ray_service_is_the_server_s() -> None:
    config = yaml.safe_load(one("RayService")["spec"]["serveConfigV2"])
    (application,) = config["applications"]
    module, _, function = application["import_path"].partition(":")
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    assert f"\ndef {function}(args: " in pathlib.Path(spec.origin).read_text()
    settings = read_values(Settings, application["args"], "args")
    (model,) = settings.models
    for pod_spec in ray_pods():
        (ray,) = pod_spec["containers"]
        ports = {each["name"]: each["containerPort"] for each in ray["ports"]}
        assert ports["serve"] == config["http_options"]["port"]
        assert str(model.base_path).startswith(f"{ray['volumeMounts'][0]['mountPath']}/")
    online = settings.thread_pools[0]
    replicas, cpus = settings.ray.serve.of(model.name)
    assert (online.num_threads, online.intra_op_threads) == (cpus, cpus)
    workers = one("RayService")["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]
    cores = int(workers["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"])
    assert isinstance(replicas, ReplicaRange)
    assert replicas.max * cpus + settings.ray.serve.fronts <= workers["maxReplicas"] * cores
    assert ray_pods()[1]["terminationGracePeriodSeconds"] > settings.rest.drain_seconds


def test_the_ray_service_has_the_version_of_the_constraints() -> None:
    (version,) = re.findall(
        r"^ray==(.+)$", (CONFIGS.parent / "constraints.txt").read_text(), re.MULTILINE
    )
    assert one("RayService")["spec"]["rayClusterConfig"]["rayVersion"] == version
    image = (CONFIGS / "kuberay" / "Dockerfile").read_text()
    assert f"\nFROM rayproject/ray:{version}-py3" in image


def test_selectors_find_the_pods() -> None:
    labels = pod()["metadata"]["labels"].items()
    selectors = [one("Deployment")["spec"]["selector"]["matchLabels"]]
    selectors += [one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"]]
    selectors += [each["spec"]["selector"] for each in KUBERNETES if each["kind"] == "Service"]
    assert len(selectors) == 4
    assert all(selector and selector.items() <= labels for selector in selectors)


def test_ports_are_those_of_the_settings(settings: Settings) -> None:
    ports = {each["name"]: each["containerPort"] for each in container()["ports"]}
    assert ports == {"http": settings.rest.port, "grpc": settings.grpc.port}
    for name in ("runstep", "runstep-pods"):
        for port in one("Service", name)["spec"]["ports"]:
            assert ports[port["targetPort"]] == port["port"]
    assert f"EXPOSE {ports['grpc']} {ports['http']}" in DOCKERFILE
    scraped = pod()["metadata"]["annotations"]
    assert scraped["prometheus.io/port"] == str(ports["http"])
    assert scraped["prometheus.io/path"] == settings.rest.metrics_path


def test_the_settings_and_the_models_are_read(settings: Settings, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "models.config"
    path.write_text(one("ConfigMap")["data"]["models.config"])
    (model,) = read_model_config_file(path)
    mounts = {each["name"]: each["mountPath"] for each in container()["volumeMounts"]}
    assert str(model.base_path).startswith(f"{mounts['models']}/")
    assert settings.model_config_file == f"{mounts['settings']}/models.config"
    assert container()["args"] == [f"--config={mounts['settings']}/server.yaml"]
    assert settings.rest.host == "0.0.0.0"


def test_threads_are_as_many_as_the_cores_of_the_limit(settings: Settings) -> None:
    online = settings.thread_pools[0]
    cores = int(container()["resources"]["limits"]["cpu"])
    assert (online.num_threads, online.intra_op_threads) == (cores, cores)


def test_every_volume_that_is_mounted_is_there() -> None:
    mounted = {each["name"] for each in container()["volumeMounts"]}
    assert mounted == {each["name"] for each in pod()["spec"]["volumes"]}


def test_the_weights_of_several_processes_fit_into_the_volume() -> None:
    """Twice for each version, and two versions at a time: docs/processes.md."""
    (volume,) = (each for each in pod()["spec"]["volumes"] if each["name"] == "temporary")
    (mount,) = (each for each in container()["volumeMounts"] if each["name"] == "temporary")
    limit = re.fullmatch(r"(\d+)Mi", volume["emptyDir"]["sizeLimit"])
    assert limit is not None and mount["mountPath"] == "/tmp"
    page = " ".join((CONFIGS.parent / "docs" / "processes.md").read_text().split())
    found = re.search(r"ResNet50 with (\d+) MiB of weights needs (\d+) MiB", page)
    assert found is not None and int(found[2]) == 4 * int(found[1]) < int(limit[1])


def test_a_pod_has_time_to_drain(settings: Settings) -> None:
    command, seconds = container()["lifecycle"]["preStop"]["exec"]["command"]
    assert command == "sleep"
    needed = int(seconds) + settings.rest.drain_seconds
    assert needed + 10 <= pod()["spec"]["terminationGracePeriodSeconds"]
    of_kserve = one("InferenceService", "resnet")["spec"]["predictor"]
    assert needed + 10 <= of_kserve["terminationGracePeriodSeconds"]


def test_probes_are_calls_of_the_server() -> None:
    probed = [
        (of, name, of[name]["httpGet"])
        for of in (container(), runtime_container())
        for name in ("startupProbe", "livenessProbe", "readinessProbe")
        if name in of
    ]
    assert len(probed) == 5
    for of, _, get in probed:
        assert get["port"] in [each[key] for each in of["ports"] for key in each]

    async def scenario(server: RestServer) -> None:
        for _, name, get in probed:
            assert (await server.client.get(get["path"])).status_code == 200, name
        await server.services.lifecycle.drain(0)
        for _, name, get in probed:
            is_ready = (await server.client.get(get["path"])).status_code == 200
            assert is_ready is (name != "readinessProbe"), name

    with_server(scenario, models=())


def test_the_user_is_the_image_s() -> None:
    assert f"--uid {pod()['spec']['securityContext']['runAsUser']} runstep" in DOCKERFILE
    assert f"--uid {runtime_container()['securityContext']['runAsUser']} runstep" in DOCKERFILE


def test_the_container_of_the_serving_runtime_is_valid() -> None:
    wrapped = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": one("ServingRuntime")["spec"]["containers"]},
    }
    kubernetes_validate.validate(wrapped, VERSIONS[-1], strict=True)
    assert runtime_container()["name"] == "kserve-container"  # KServe looks for this name
    (command,) = runtime_container()["command"]
    assert f"{command}\n" in DOCKERFILE


def test_the_flags_of_the_serving_runtime_are_the_server_s() -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    arguments = [each.replace("{{.Name}}", "resnet") for each in runtime_container()["args"]]
    flags = FlagValues(parser.parse_args(arguments), {})
    settings = load_settings(flags=flags.settings, environment={})
    (model,) = settings.models
    assert (model.name, model.base_path) == ("resnet", "/mnt/models")
    online = with_threads(settings, flags).thread_pools[0]
    cores = int(runtime_container()["resources"]["limits"]["cpu"])
    assert (online.num_threads, online.intra_op_threads) == (cores, cores)
    (port,) = runtime_container()["ports"]
    assert settings.rest.port == port["containerPort"]
    assert settings.grpc.port == 9000
    assert settings.rest.timeout_ms == 60000
    annotations = one("ServingRuntime")["spec"]["annotations"]
    assert annotations["prometheus.kserve.io/path"] == settings.rest.metrics_path
    assert annotations["prometheus.kserve.io/port"] == str(settings.rest.port)


def test_the_inference_service_fits_the_runtime() -> None:
    model = one("InferenceService", "resnet")["spec"]["predictor"]["model"]
    runtime = one("ServingRuntime")
    assert model["runtime"] == runtime["metadata"]["name"]
    assert model["protocolVersion"] in runtime["spec"]["protocolVersions"]
    formats = [
        {"name": each["name"], "version": each["version"]}
        for each in runtime["spec"]["supportedModelFormats"]
    ]
    assert model["modelFormat"] in formats
