"""The image, the compose file and the manifests agree with the program and with each other."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from typing import Any

import pytest
from tests.deployed import (
    EXAMPLE,
    MANIFESTS,
    OWN_FILE,
    ROOT,
    compose,
    dockerfile,
    kustomization,
    last_stage,
    manifests,
    of_kind,
    pods,
)

from conspectus.cli.main import build_app
from conspectus.cli.serve import HEARTBEAT_SECONDS
from conspectus.settings import CONFIG, PREFIX, Settings
from conspectus.web.routes.server import router
from conspectus.web.supervisor import END_MARGIN_SECONDS

DEFAULTS = Settings()
COMMANDS = {command.name for command in build_app().registered_commands}
ROUTES = {getattr(route, "path", "") for route in router.routes}
ENVIRONMENT = {PREFIX + name.upper() for name in Settings.__dataclass_fields__} | {CONFIG}
OF_PYTHON = {"PATH", "HOME", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}
OF_LIBRARIES = {"ORT_DISABLE_TELEMETRY", "PGPASSWORD", "OPENAI_API_KEY"}
COMPILERS = ("gcc", "g++", "build-essential", "clang", "-dev", "cargo", "make")
UNITS = {"s": 1, "m": 60}
PINNED = re.compile(r"^([a-z0-9._-]+)==(\S+)((?: ;[^\\]*)?) \\$", re.MULTILINE)


def list_unknown(names: Iterable[str]) -> list[str]:
    return sorted(set(names) - ENVIRONMENT - OF_PYTHON - OF_LIBRARIES)


def read_environment(step: str) -> dict[str, str]:
    """The names and values of an ENV instruction."""
    return dict(re.findall(r"([A-Z_]+)=(\S+)", step))


def read_lock(name: str) -> dict[str, str]:
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    return {f"{package}{marker}": version for package, version, marker in PINNED.findall(text)}


def max_shutdown_seconds(settings: dict[str, str]) -> float:
    """How long a server takes to end at most."""
    grace = int(settings.get("CONSPECTUS_JOB_GRACE_SECONDS", DEFAULTS.job_grace_seconds))
    drain = int(settings.get("CONSPECTUS_DRAIN_SECONDS", DEFAULTS.drain_seconds))
    return drain + 2 * grace + END_MARGIN_SECONDS


def resolve_environment(container: dict[str, Any]) -> dict[str, str]:
    """The environment of a container: what ConfigMaps and Secrets give, and what stands there."""
    environment: dict[str, str] = {}
    for reference in container["envFrom"]:
        ((kind, named),) = reference.items()
        (source,) = [
            manifest
            for manifest in of_kind({"configMapRef": "ConfigMap", "secretRef": "Secret"}[kind])
            if manifest["metadata"]["name"] == named["name"]
        ]
        environment |= source.get("data", {}) | source.get("stringData", {})
    return environment | {variable["name"]: variable["value"] for variable in container.get("env", ())}


def list_probes(kind: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for _, _, pod in pods():
        for container in pod["containers"]:
            declared = [probe for name, probe in container.items() if name.endswith("Probe")]
            yield from ((container, probe[kind]) for probe in declared if kind in probe)


def test_the_image_is_run_by_a_numeric_user_who_is_not_root() -> None:
    (step,) = last_stage("USER")
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", step.rest)


def test_the_image_holds_no_compiler_and_takes_packages_by_hash_alone() -> None:
    shipped = " ".join(step.rest for step in last_stage("RUN"))
    assert [word for word in COMPILERS if word in shipped.split()] == []
    assert "pip" not in shipped
    installs = [step.rest for step in dockerfile() if "install" in step.rest and " -r " in step.rest]
    assert installs
    for part in " && ".join(installs).split("&&"):
        if " -r " in part:
            assert "--require-hashes" in part
            assert "--only-binary :all:" in part


def test_the_image_starts_the_program() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [last_stage("ENTRYPOINT")[0].words[0]] == list(project["scripts"])
    assert last_stage("CMD")[0].words[0] in COMMANDS
    assert last_stage("STOPSIGNAL")[0].rest == "SIGTERM"


def test_the_image_names_settings_and_a_port_that_exist() -> None:
    named = {name: value for step in last_stage("ENV") for name, value in read_environment(step.rest).items()}
    assert list_unknown(named) == []
    assert named["CONSPECTUS_PORT"] == last_stage("EXPOSE")[0].rest == str(DEFAULTS.port)


def test_the_health_check_asks_a_route_at_the_port_that_is_set() -> None:
    (check,) = last_stage("HEALTHCHECK")
    (path,) = re.findall(r"'GET', '([^']+)'", check.rest)
    assert path in ROUTES
    assert "CONSPECTUS_PORT" in check.rest


def test_what_the_image_copies_is_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_in = [line.removeprefix("!").rstrip("/") for line in ignored if line.startswith("!")]
    assert "*" in ignored
    for step in dockerfile():
        if step.name == "COPY" and not step.rest.startswith("--from"):
            for name in step.words[:-1]:
                assert (ROOT / name).exists()
                assert any(fnmatch(name.rstrip("/"), pattern) for pattern in let_in)


def test_the_locks_of_the_image_hold_the_versions_that_are_tested() -> None:
    (requirements,) = {step.rest for step in dockerfile() if step.rest.startswith("REQUIREMENTS=")}
    assert (ROOT / "requirements" / f"{requirements.partition('=')[2]}.txt").exists()
    base, full, tested = read_lock("base.txt"), read_lock("server-full.txt"), read_lock("dev.txt")
    server = read_lock("server.txt")
    assert base.items() <= server.items() <= full.items()
    assert {"psycopg", "openai"} <= set(server)
    assert {name for name in server if name in tested and server[name] != tested[name]} == set()


@pytest.mark.parametrize(
    "name", [key for key, description in compose()["services"].items() if "build" in description]
)
def test_a_service_runs_a_command_under_limits(name: str) -> None:
    service = compose()["services"][name]
    assert service["command"][0] in COMMANDS
    assert list_unknown(service["environment"]) == []
    assert service["read_only"]
    assert service["init"]
    assert service["cap_drop"] == ["ALL"]
    assert service["restart"] == "unless-stopped"
    assert service["deploy"]["resources"]["limits"].keys() == {"cpus", "memory", "pids"}
    amount, unit = re.fullmatch(r"(\d+)([sm])", service["stop_grace_period"]).groups()
    assert int(amount) * UNITS[unit] >= max_shutdown_seconds(service["environment"])


def test_a_service_of_the_compose_file_waits_for_a_healthy_database_with_a_password() -> None:
    file = compose()
    database = file["services"]["postgres"]
    assert database["image"].startswith("pgvector/pgvector:pg")
    assert database["healthcheck"]["test"][1:3] == ["pg_isready", "--host=127.0.0.1"]
    assert database["shm_size"] == "1gb"
    assert database["volumes"] == ["postgres:/var/lib/postgresql"]
    assert "postgres" in file["volumes"]
    for service in file["services"].values():
        for name, value in service["environment"].items():
            assert "PASSWORD" not in name or value.startswith("${POSTGRES_PASSWORD:?")
        if service is not database:
            assert service["depends_on"]["postgres"]["condition"] == "service_healthy"
            assert ":" not in service["environment"]["CONSPECTUS_PATH"].split("@")[0].partition("//")[2]


def test_the_compose_file_shows_the_servers_port_to_this_machine_alone() -> None:
    file = compose()
    (published,) = [port for service in file["services"].values() for port in service.get("ports", ())]
    assert published.startswith("${CONSPECTUS_PUBLISH:-127.0.0.1:")
    assert published.endswith(f":{DEFAULTS.port}")


def test_what_the_compose_file_asks_for_is_in_the_example() -> None:
    variables = set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "compose.yaml").read_text(encoding="utf-8")))
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    offered = dict(re.findall(r"^#?([A-Z_]+)=(.*)$", example, re.MULTILINE))
    assert set(offered) <= variables
    assert offered["POSTGRES_PASSWORD"] == "''"


def test_every_manifest_is_applied_but_the_example_of_a_secret() -> None:
    files = {path.name for path in MANIFESTS.glob("*.yaml")} - {OWN_FILE, EXAMPLE}
    assert set(kustomization()["resources"]) == files
    assert all({"apiVersion", "kind", "metadata"} <= manifest.keys() for manifest in manifests())
    of_secrets = [manifest for manifest in manifests() if manifest["kind"] == "Secret"]
    assert [manifest["metadata"]["name"] for manifest in of_secrets] == ["conspectus"]


def test_pods_run_commands_with_settings_that_exist() -> None:
    (named,) = kustomization()["images"]
    for _, _, pod in pods():
        for container in pod["containers"]:
            assert container["args"][0] in COMMANDS
            assert container["image"] == named["name"]
            assert list_unknown(resolve_environment(container)) == []
            assert pod["terminationGracePeriodSeconds"] >= max_shutdown_seconds(
                resolve_environment(container)
            )


def test_probes_ask_routes_at_the_port_that_is_served() -> None:
    requests = list(list_probes("httpGet"))
    assert {get["path"] for _, get in requests} == {"/healthz", "/readyz"}
    for container, get in requests:
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        assert get["path"] in ROUTES
        assert str(ports[get["port"]]) == resolve_environment(container)["CONSPECTUS_PORT"]


def test_workers_are_asked_for_the_heartbeat_that_they_have() -> None:
    worker = compose()["services"]["worker"]
    ((container, probe),) = list_probes("exec")
    assert worker["healthcheck"]["test"] == ["CMD", *probe["command"]]
    *_, file, age = probe["command"]
    assert worker["command"] == container["args"] == ["worker", "--heartbeat-file", file]
    assert float(age) >= 30 * HEARTBEAT_SECONDS
    assert all("livenessProbe" in declared for _, _, pod in pods() for declared in pod["containers"])


def test_pods_may_do_nothing_that_they_need_not() -> None:
    (user,) = last_stage("USER")
    for _, _, pod in pods():
        pod_security = pod["securityContext"]
        assert pod_security["runAsNonRoot"]
        assert f"{pod_security['runAsUser']}:{pod_security['runAsGroup']}" == user.rest
        assert pod_security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False
        assert pod["shareProcessNamespace"]
        for container in pod["containers"]:
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"]
            assert not security["allowPrivilegeEscalation"]
            assert security["capabilities"] == {"drop": ["ALL"]}
            assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/data", "/tmp"}


def test_servers_are_replaced_before_they_are_taken_away() -> None:
    (servers,) = [
        deployment
        for deployment in of_kind("Deployment")
        if deployment["metadata"]["name"] == "conspectus-server"
    ]
    assert servers["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    (container,) = servers["spec"]["template"]["spec"]["containers"]
    wait = container["readinessProbe"]["periodSeconds"] * container["readinessProbe"]["failureThreshold"]
    assert int(resolve_environment(container)["CONSPECTUS_DRAIN_SECONDS"]) >= wait


def test_what_selects_pods_finds_some() -> None:
    labels = [pod_labels for _, pod_labels, _ in pods()]
    selectors = [deployment["spec"]["selector"]["matchLabels"] for deployment in of_kind("Deployment")]
    selectors += [service["spec"]["selector"] for service in of_kind("Service")]
    selectors += [budget["spec"]["selector"]["matchLabels"] for budget in of_kind("PodDisruptionBudget")]
    selectors += [policy["spec"]["podSelector"]["matchLabels"] for policy in of_kind("NetworkPolicy")]
    assert len(selectors) == 7
    for selector in selectors:
        assert any(selector.items() <= pod_labels.items() for pod_labels in labels)
    named = {deployment["metadata"]["name"] for deployment in of_kind("Deployment")}
    for scaler in of_kind("HorizontalPodAutoscaler"):
        assert scaler["spec"]["scaleTargetRef"]["name"] in named
        assert scaler["spec"]["minReplicas"] >= 2


def test_base_images_are_pinned_by_digest() -> None:
    default = re.search(r"^ARG PYTHON=(.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert default is not None
    others = [service["image"] for service in compose()["services"].values() if "build" not in service]
    for image in (default[1], *others):
        assert re.search(r"@sha256:[0-9a-f]{64}$", image), image
