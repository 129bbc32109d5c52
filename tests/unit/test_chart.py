"""The chart as Helm itself renders it, and what it renders as Kubernetes' own schemas have it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import helm_python as helm
import kubernetes_validate
import pytest
import yaml

from hearth.config.check import check, check_worker
from hearth.config.load import load_settings
from hearth.config.settings import Settings
from hearth.gateway.api.health import router
from hearth.gateway.server import DRAIN_SECONDS
from hearth.gateway.worker_service import WorkerService

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "hearth"
OLDEST, NEWEST = "1.27", "1.37"
"""Of Kubernetes: what Chart.yaml asks for, and the newest schemas there are."""
HASH = f"sha256:{'a' * 64}"
LEAST: dict[str, Any] = {
    "servers": {"existingSecret": "servers", "qdrantUrl": "https://qdrant.internal:6333"},
    "gatewaySecrets": ["providers"],
    "config": {
        "model_list": [{"model_name": "gpt", "litellm_params": {"model": "openai/gpt"}}],
        "hearth": {
            "recall": {"deadline_ms": 200},
            "keys": [{"name": "app", "hash": HASH, "tenant": "t", "users": "named"}],
        },
    },
}
PEER = {"podSelector": {"matchLabels": {"app": "other"}}}
ALL: dict[str, Any] = LEAST | {
    "image": {"digest": HASH},
    "imagePullSecrets": [{"name": "registry"}],
    "ledger": {"existingClaim": "erasures"},
    "gateway": {
        "autoscaling": {"enabled": True},
        "spool": {"storageClassName": "fast"},
        "annotations": {"team": "memory"},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
    },
    "worker": {
        "autoscaling": {"enabled": True},
        "annotations": {"team": "memory"},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
    },
    "service": {"type": "LoadBalancer", "annotations": {"internal": "true"}},
    "networkPolicy": {
        "gatewayFrom": [PEER],
        "workerFrom": [PEER],
        "servers": [{"port": 5432, "to": [PEER]}],
    },
    "serviceAccount": {"annotations": {"role": "hearth"}},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}, "keySecret": {"name": "admin"}},
}


@cache
def _rendered(name: str, values: str) -> dict[str, str]:
    with helm.Chart.load(str(CHART)) as chart:
        chart.validate_schema(json.loads(values))
        return chart.render(json.loads(values), name=name, namespace="prod")


def rendered_as(name: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    """Everything that an installation of this name with these values would make."""
    texts = [text for path, text in _rendered(name, json.dumps(values)).items() if path.endswith(".yaml")]
    return [one for text in texts for one in yaml.safe_load_all(text) if one]


def manifests(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Everything that an installation called `demo` would make."""
    return rendered_as("demo", values)


def one(values: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    (found,) = (m for m in manifests(values) if (m["kind"], m["metadata"]["name"]) == (kind, name))
    return found


def pods(values: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The gateways' and the workers' pod templates."""
    yield "gateway", one(values, "StatefulSet", "demo-gateway")["spec"]["template"]
    yield "worker", one(values, "Deployment", "demo-worker")["spec"]["template"]


def changed(**values: Any) -> dict[str, Any]:
    """The least values, and these."""
    return deepcopy(LEAST) | values


@pytest.mark.parametrize("values", [LEAST, ALL], ids=["least", "all"])
def test_helm_finds_no_fault(values: dict[str, Any]) -> None:
    """`helm lint --strict`, with the fewest values and with most of them."""
    report = helm.lint(str(CHART), values, strict=True)
    assert report["errors"] == []
    assert [m["error"] for m in report["messages"]] == ["icon is recommended"]


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("values", [LEAST, ALL], ids=["least", "all"])
def test_every_manifest_is_kubernetes(values: dict[str, Any], version: str) -> None:
    """Each has the fields and types of its kind and no others; monitors have no schema of Kubernetes' own."""
    made = manifests(values)
    for manifest in made:
        if manifest["kind"] != "ServiceMonitor":
            kubernetes_validate.validate(manifest, version, strict=True)
    assert len({(m["kind"], m["metadata"]["name"]) for m in made}) == len(made)


def test_what_is_made() -> None:
    """The fewest values make no autoscaler and no monitor, and no values make a Secret."""
    least = {(m["kind"], m["metadata"]["name"]) for m in manifests(LEAST)}
    extra = {(m["kind"], m["metadata"]["name"]) for m in manifests(ALL)} - least
    assert {kind for kind, _ in least} == {
        "ConfigMap",
        "Deployment",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
        "ServiceAccount",
        "StatefulSet",
    }
    assert {kind for kind, _ in extra} == {"HorizontalPodAutoscaler", "ServiceMonitor"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (changed(servers={"existingSecret": "", "qdrantUrl": "https://q"}), "servers.existingSecret"),
        (changed(servers={"existingSecret": "s", "qdrantUrl": ""}), "servers.qdrantUrl"),
        (changed(servers={"existingSecret": "s", "qdrantUrl": "q:6333"}), "qdrantUrl"),
        (changed(wroker={}), "wroker"),
        (changed(worker={"replicas": 17}), "replicas"),
        (changed(config={"hearth": {"keys": [{"name": "a", "key": "sk-plain", "hash": HASH}]}}), "keys"),
        (changed(config={"hearth": {"postgres_url": "postgresql://u:secret@h/d"}}), "postgres_url"),
        (changed(serviceMonitor={"enabled": True}), "keySecret"),
    ],
)
def test_values_that_cannot_work_are_refused(values: dict[str, Any], said: str) -> None:
    """What is missing, misspelt, too many or a secret is named before anything is installed."""
    with pytest.raises(helm.HelmError, match=re.escape(said)):
        manifests(values)


def settings_of(component: str, tmp_path: Path, values: dict[str, Any] = LEAST) -> Settings:
    """The configuration in the ConfigMap, read with the variables that the pod is given."""
    path = tmp_path / f"{component}.yaml"
    path.write_text(one(values, "ConfigMap", "demo")["data"][path.name], encoding="utf-8")
    container = dict(pods(values))[component]["spec"]["containers"][0]
    given = {
        "POSTGRES_URL": "postgresql://u:p@h/d",
        "REDIS_URL": "redis://h",
        "QDRANT_API_KEY": "k",
        "HEARTH_DATA_DIR": "/run/hearth/data",
    }
    assert {variable["name"] for variable in container["env"]} == set(given)
    assert container["args"][:3] == [
        "serve" if component == "gateway" else "worker",
        "--config",
        f"/etc/hearth/{path.name}",
    ]
    return load_settings(path, given | {"HEARTH_CAPTURE__SPOOL_DIR": str(tmp_path)})


def test_the_configuration_is_one_that_hearth_takes(tmp_path: Path) -> None:
    """What the values say, and over it what the chart decides; a worker gets no keys and no models."""
    gateway = settings_of("gateway", tmp_path)
    assert [p for p in check(gateway, host="0.0.0.0") if "data_dir" not in p.where] == []
    assert gateway.hearth.recall.deadline_ms == 200
    assert gateway.hearth.drain_seconds == 15
    assert gateway.hearth.worker == "external"
    worker = settings_of("worker", tmp_path)
    assert [p for p in check_worker(worker) if "data_dir" not in p.where] == []
    assert (worker.hearth.keys, worker.litellm) == ((), {})
    assert worker.hearth.recall.deadline_ms == 200


def test_only_gateways_get_the_providers_keys() -> None:
    """Workers call nobody where rules read facts."""
    given = {name: pod["spec"]["containers"][0].get("envFrom") for name, pod in pods(LEAST)}
    assert given == {"gateway": [{"secretRef": {"name": "providers"}}], "worker": None}


@pytest.mark.parametrize(
    "asking",
    [
        {"life": {"facts": "model", "extraction": {"model": "gpt"}}},
        {"tenants": {"quiet": {}, "t": {"life": {"facts": "model", "extraction": {"model": "gpt"}}}}},
    ],
    ids=["everybody", "a tenant"],
)
def test_where_a_model_reads_facts_workers_reach_it_as_gateways_do(
    tmp_path: Path, asking: dict[str, Any]
) -> None:
    """The same models, the same Secrets by reference and the same way out; still no key of Hearth's."""
    values = changed(config=LEAST["config"] | {"hearth": LEAST["config"]["hearth"] | asking})
    worker = settings_of("worker", tmp_path, values)
    assert [p for p in check_worker(worker) if "data_dir" not in p.where] == []
    assert (worker.hearth.keys, worker.litellm) == ((), {"model_list": LEAST["config"]["model_list"]})
    given = [pod["spec"]["containers"][0]["envFrom"] for _, pod in pods(values)]
    assert given == [[{"secretRef": {"name": "providers"}}]] * 2
    gateway, workers = (
        one(values, "NetworkPolicy", f"demo-{name}")["spec"]["egress"] for name in ("gateway", "worker")
    )
    assert gateway == workers


@pytest.mark.parametrize("values", [LEAST, ALL], ids=["least", "all"])
def test_pods_have_few_rights(values: dict[str, Any]) -> None:
    """As Kubernetes' restricted standard asks, and with a root file system that nobody writes."""
    for _, pod in pods(values):
        spec, container = pod["spec"], pod["spec"]["containers"][0]
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert f"\nUSER {spec['securityContext']['runAsUser']}\n" in (ROOT / "Dockerfile").read_text("utf-8")
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"].keys() == {"requests", "limits"}


def test_what_is_written_is_mounted(tmp_path: Path) -> None:
    """The folder of a process in memory, the spool on the gateway's own volume."""
    hearth = yaml.safe_load(one(LEAST, "ConfigMap", "demo")["data"]["gateway.yaml"])["hearth"]
    for name, pod in pods(LEAST):
        mounts = {m["mountPath"]: m["name"] for m in pod["spec"]["containers"][0]["volumeMounts"]}
        assert mounts[str(Path(hearth["data_dir"]).parent)] == "own"
        assert mounts["/tmp"] == "own"
        assert ("/spool" in mounts) == (name == "gateway")
    assert Path(hearth["capture"]["spool_dir"]).parent == Path("/spool")
    gateway = one(LEAST, "StatefulSet", "demo-gateway")["spec"]
    assert [claim["metadata"]["name"] for claim in gateway["volumeClaimTemplates"]] == ["spool"]
    assert gateway["persistentVolumeClaimRetentionPolicy"] == {
        "whenDeleted": "Retain",
        "whenScaled": "Retain",
    }


def test_the_ledger_of_erasures_is_one_file_of_all_pods(tmp_path: Path) -> None:
    """On the claim that is named; without one it goes with its pod, and nothing is mounted."""
    for name, pod in pods(ALL):
        spec = pod["spec"]
        (volume,) = (one for one in spec["volumes"] if one["name"] == "ledger")
        assert volume["persistentVolumeClaim"] == {"claimName": "erasures"}
        mounts = {m["mountPath"]: m["name"] for m in spec["containers"][0]["volumeMounts"]}
        hearth = yaml.safe_load(one(ALL, "ConfigMap", "demo")["data"][f"{name}.yaml"])["hearth"]
        assert mounts[str(Path(hearth["erasure"]["ledger"]).parent)] == "ledger"
    for _, pod in pods(LEAST):
        assert "ledger" not in str(pod)


def test_probes_ask_where_something_answers(tmp_path: Path) -> None:
    """Each probe's path is a route, its port the served one, and a start may take three minutes."""
    served = {
        "gateway": {f"/memory{route.path}" for route in router.routes},  # type: ignore[attr-defined]
        "worker": {r.path for r in WorkerService(settings_of("worker", tmp_path)).app().routes},  # type: ignore[attr-defined]
    }
    for name, pod in pods(LEAST):
        (container,) = pod["spec"]["containers"]
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"]["path"] in served[name]
            assert container[probe]["httpGet"]["port"] == container["ports"][0]["name"]
        assert container["args"][-1] == str(container["ports"][0]["containerPort"])
        assert (
            container["startupProbe"]["periodSeconds"] * container["startupProbe"]["failureThreshold"] == 180
        )


@pytest.mark.parametrize("drain", [0, 15, 120])
def test_a_pod_may_end_before_it_is_killed(drain: int) -> None:
    """Draining, calls under way and a margin, whatever is set."""
    graces = {
        name: pod["spec"]["terminationGracePeriodSeconds"] for name, pod in pods(changed(drainSeconds=drain))
    }
    assert graces["gateway"] >= drain + DRAIN_SECONDS + 30
    assert graces["worker"] >= DRAIN_SECONDS + 30


def test_the_number_of_workers_can_be_left_alone() -> None:
    """Where an autoscaler of the operator's own decides, an upgrade does not set it back."""
    alone = changed(worker={"replicas": None})
    assert one(LEAST, "Deployment", "demo-worker")["spec"]["replicas"] == 2
    assert "replicas" not in one(alone, "Deployment", "demo-worker")["spec"]


def notes(values: dict[str, Any]) -> str:
    """What an installation says at its end."""
    (text,) = (t for path, t in _rendered("demo", json.dumps(values)).items() if path.endswith("NOTES.txt"))
    return text


def test_the_notes_say_that_monitors_reach_no_worker() -> None:
    """Monitors ask for the workers' counters, and the policy lets nobody in unless somebody is named."""
    monitored = changed(serviceMonitor={"enabled": True, "keySecret": {"name": "admin"}})
    assert "workerFrom names nobody" in notes(monitored)
    assert "workerFrom" not in notes(monitored | {"networkPolicy": {"workerFrom": [PEER]}})
    assert "workerFrom" not in notes(LEAST)


def test_a_changed_configuration_starts_the_pods_anew() -> None:
    """A gateway reads its file once; one that has not changed leaves the pods alone."""
    other = changed(config=LEAST["config"] | {"router_settings": {"num_retries": 1}})
    before, after = dict(pods(LEAST)), dict(pods(other))
    sums = {n: (before[n]["metadata"]["annotations"], after[n]["metadata"]["annotations"]) for n in before}
    assert sums["gateway"][0] != sums["gateway"][1]
    assert sums["worker"][0] == sums["worker"][1]


@pytest.mark.parametrize("values", [LEAST, ALL], ids=["least", "all"])
def test_every_selector_finds_its_pods_and_no_others(values: dict[str, Any]) -> None:
    """Of services, budgets, policies, spreads and the sets themselves."""
    labels = {name: pod["metadata"]["labels"] for name, pod in pods(values)}
    selectors = [
        (m["metadata"]["labels"]["app.kubernetes.io/component"], selector)
        for m in manifests(values)
        if m["kind"] != "ServiceMonitor"
        for selector in _selectors(m)
    ]
    assert len(selectors) >= 3 + 2 + 2 + 4 + 2
    for component, selector in selectors:
        assert [name for name, own in labels.items() if selector.items() <= own.items()] == [component]


def _selectors(manifest: dict[str, Any]) -> Iterator[dict[str, str]]:
    spec = manifest.get("spec", {})
    match manifest["kind"]:
        case "Service":
            yield spec["selector"]
        case "NetworkPolicy":
            yield spec["podSelector"]["matchLabels"]
        case "PodDisruptionBudget":
            yield spec["selector"]["matchLabels"]
        case "StatefulSet" | "Deployment":
            yield spec["selector"]["matchLabels"]
            for spread in spec["template"]["spec"]["topologySpreadConstraints"]:
                yield spread["labelSelector"]["matchLabels"]


def test_monitors_find_their_services() -> None:
    """One service for the gateways and one for the workers, each at the path of its counters."""
    services = [m for m in manifests(ALL) if m["kind"] == "Service"]
    found = {}
    for monitor in (m for m in manifests(ALL) if m["kind"] == "ServiceMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        (service,) = (s for s in services if wanted <= s["metadata"]["labels"].items())
        (endpoint,) = monitor["spec"]["endpoints"]
        assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
        found[service["metadata"]["name"]] = endpoint["path"]
    assert found == {"demo": "/memory/metrics", "demo-worker": "/metrics"}


def test_who_may_reach_whom() -> None:
    """Gateways are called and call providers; workers are called by nobody; both reach names and servers."""
    gateway = one(LEAST, "NetworkPolicy", "demo-gateway")["spec"]
    worker = one(LEAST, "NetworkPolicy", "demo-worker")["spec"]
    assert gateway["ingress"] == [{"ports": [{"port": "http", "protocol": "TCP"}]}]
    assert worker["ingress"] == []
    reached = {name: [p["port"] for rule in policy["egress"] for p in rule["ports"]] for name, policy in
               (("gateway", gateway), ("worker", worker))}  # fmt: skip
    assert reached == {"gateway": [53, 53, 5432, 6379, 6333, 443], "worker": [53, 53, 5432, 6379, 6333]}
    assert "169.254.0.0/16" in gateway["egress"][-1]["to"][0]["ipBlock"]["except"]


def test_the_values_shown_can_be_installed() -> None:
    """The example of the chart's page renders."""
    (shown,) = re.findall(r"^```yaml\n(.*?)^```", (CHART / "README.md").read_text("utf-8"), re.M | re.S)
    assert one(yaml.safe_load(shown), "StatefulSet", "demo-gateway")


def test_the_page_of_the_chart_lists_every_value() -> None:
    """And none that there is not."""
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    listed = re.findall(r"^\| `([\w.]+)`", (CHART / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(_leaves(values))


def _leaves(values: dict[str, Any], before: str = "") -> Iterator[str]:
    """Dotted names of what can be set; a mapping of the user's own is one."""
    for name, value in values.items():
        path = f"{before}{name}"
        whole = path.endswith((".resources", ".disruptionBudget", "keySecret")) or not value
        if isinstance(value, dict) and not whole and path != "config":
            yield from _leaves(value, f"{path}.")
        else:
            yield path
