"""The alerts ask for metrics that there are, and the page on them says what they and health say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import promql_parser
import pytest
import yaml
from msgspec.structs import replace
from prometheus_client import Counter, Histogram
from prometheus_client.parser import text_string_to_metric_families

from hearth.gateway.api.health import router
from hearth.memory import metrics
from hearth.memory.events.sql_log import LogHealth
from hearth.memory.gauges import HealthGauges, exposed
from hearth.memory.health import (
    REFUSES,
    WITHOUT,
    Part,
    State,
    child_part,
    extraction_part,
    file_parts,
    log_part,
    overall,
    recall_part,
    spool_part,
    worker_part,
)
from hearth.memory.policies import FileAccount
from hearth.memory.stores.vector_child import ChildHealth
from hearth.memory.stores.vector_child_wire import State as ChildState
from hearth.memory.types import Status
from hearth.memory.verify import Drift, Verification, Verified
from hearth.memory.working import CONSUMERS, ExtractionHealth, WorkerHealth
from tests.events import START

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
(GROUP,) = yaml.safe_load((ROOT / "deploy" / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
RULES: list[dict[str, Any]] = GROUP["rules"]
NAMES = [rule["alert"] for rule in RULES]
LOG = LogHealth(wal_bytes=0, fsync_p50_ms=1.0, writable=True, events=3, last_error="")
LAG = dict(zip(CONSUMERS, (7, 9, 11, 13, 15, 17, 19), strict=True))
VERIFIED = Verification(began=START, ended=START, found=Verified(damages=2, long_term=Drift(missing=3)))
WORKER = WorkerHealth(running=True, lag=LAG, waited=2.5, parked=1, stopped={}, errors={}, verified=VERIFIED)
PARTS = {
    "log": log_part(LOG),
    "short_term": Part(state="degraded", reasons=("does not answer",)),
    "long_term": Part(),
    "worker": worker_part(WORKER),
    "extraction": extraction_part(ExtractionHealth(lag=4, waited=30.0)),
    "spool": spool_part(3, 0),
    "recall": Part(),
    **file_parts(FileAccount(restart=2)),
}
SPOKEN = {"parked": "set aside"}


def known() -> dict[str, set[str]]:
    """The labels of every sample's name that counters, timings and gauges have."""
    labels: dict[str, set[str]] = {}
    for metric in vars(metrics).values():
        if isinstance(metric, Counter):
            labels[f"{metric._name}_total"] = set(metric._labelnames)
        elif isinstance(metric, Histogram):
            labels |= {f"{metric._name}_{what}": {*metric._labelnames} for what in ("sum", "count")}
            labels[f"{metric._name}_bucket"] = {*metric._labelnames, "le"}
    for gauge in HealthGauges(overall(PARTS)).collect():
        labels[gauge.name] = {name for sample in gauge.samples for name in sample.labels}
    return labels


VALUES = {
    "status": set(get_args(Status)),
    "state": set(get_args(State)),
    "part": set(PARTS),
}
"""What a label can say, of those that an alert names."""


def selectors(expression: str) -> list[Any]:
    """The selectors of series in a PromQL expression."""
    found: list[Any] = []

    def visit(node: Any) -> bool:
        if isinstance(node, promql_parser.VectorSelector):
            found.append(node)
        return True

    promql_parser.walk(promql_parser.parse(expression), visit)
    return found


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_an_alert_asks_for_what_is_counted(rule: dict[str, Any]) -> None:
    """Each series has a name that a process exposes, with labels and values that it can have."""
    labels = known()
    asked = selectors(rule["expr"])
    assert asked
    for selector in asked:
        assert selector.name in labels, selector.name
        for matcher in selector.matchers.matchers:
            assert matcher.name in labels[selector.name]
            assert set(matcher.value.split("|")) <= VALUES[matcher.name], matcher.value


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_an_alert_keeps_the_labels_that_it_groups_by(rule: dict[str, Any]) -> None:
    """What it is grouped by is a label of the series, or the instance that Prometheus adds."""
    named = set(re.findall(r"by \(([^)]*)\)", rule["expr"]))
    grouped = {label.strip() for names in named for label in names.split(",")}
    labels = {"instance"}.union(*(known()[selector.name] for selector in selectors(rule["expr"])))
    assert grouped <= labels


def test_an_expression_that_asks_for_something_else_is_seen() -> None:
    """The two tests above can fail: the reader of PromQL sees into functions, sums and both sides."""
    asked = selectors('sum(rate(a_total{x="1"}[5m])) > 0.2 * sum(b) or absent(c offset 5m)')
    assert [selector.name for selector in asked] == ["a_total", "b", "c"]


def table() -> str:
    """The page's table of alerts, from the rules."""
    lines = ["| alert | | what it means | what to do |", "|---|---|---|---|"]
    for rule in RULES:
        said = [" ".join(rule["annotations"][name].split()) for name in ("summary", "description")]
        lines.append(f"| `{rule['alert']}` | {rule['labels']['severity']} | {said[0]} | {said[1]} |")
    return "\n".join(lines)


def test_the_page_lists_every_alert() -> None:
    """Between its marks the page has what the rules say, in their order."""
    (shown,) = re.findall(r"<!-- generated: alerts -->\n(.*?)\n<!-- end -->", PAGE, re.DOTALL)
    assert shown == table()


def reasons() -> set[str]:
    """Every reason that a part can give, its numbers and names as on the page."""
    counts = dict.fromkeys(("restarts", "in_flight", "late", "refused", "lexical_only", "failed"), 0)
    child = ChildHealth(running=True, state=None, search_milliseconds=2.0, **counts)
    given = {
        "pid": 1,
        "embedder": "x",
        "dimension": 4,
        "readers": 8,
        "points": 0,
        "set_aside": "",
    }
    troubled = ChildState(unfilled="a", unclean=False, problem="b", answering="NAME", **given)
    parts = [
        log_part(replace(LOG, writable=False)),
        log_part(replace(LOG, fsync_p50_ms=31.0)),
        child_part(replace(child, running=False)),
        child_part(replace(child, state=troubled)),
        child_part(replace(child, state=replace(troubled, refused=True))),
        child_part(replace(child, state=replace(troubled, problem="", wanted=1_000, seconds_left=660.0))),
        worker_part(
            WorkerHealth(
                running=False,
                lag={"index": 2_000},
                waited=61,
                parked=2,
                stopped={"NAME": ""},
                errors={"NAME": ""},
                verified=VERIFIED,
            )
        ),
        extraction_part(ExtractionHealth(lag=0, waited=901, error="NAME")),
        spool_part(3, 1),
        recall_part(["failed"] * 6, missing=dict.fromkeys(WITHOUT, 6)),
        *file_parts(FileAccount(unusable=True)).values(),
    ]
    return {re.sub(r"\d+", "N", reason) for part in parts for reason in part.reasons}


def test_the_page_explains_every_reason_of_health() -> None:
    """Its table has a row for each reason that a part can give, and for no answer and a refusal."""
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE, re.MULTILINE)
    listed = {re.sub(r"\d+", "N", reason) for name, reason in rows if name in {*PARTS, "any"}}
    assert listed == reasons() | {"does not answer", REFUSES}


def test_health_is_shown_as_gauges() -> None:
    """A state has 1 and the others 0; lag, waiting and events set aside are numbers."""
    families = text_string_to_metric_families(exposed(overall(PARTS)).decode())
    samples = {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}
    assert samples["hearth_part_state", "short_term", "degraded"] == 1
    assert samples["hearth_part_state", "short_term", "ok"] == 0
    assert {name: samples["hearth_worker_lag_events", name] for name in CONSUMERS} == LAG
    assert samples["hearth_verified_drift_records",] == 3
    assert samples["hearth_worker_waited_seconds",] == 2.5
    assert samples["hearth_worker_parked_events",] == 1
    assert samples["hearth_spool_events",] == 3
    assert samples["hearth_extraction_lag_events",] == 4
    assert samples["hearth_extraction_waited_seconds",] == 30


def test_the_scraping_shown_asks_where_metrics_are() -> None:
    """Each job's path is one that the gateway or the worker serves; the services are called as in Compose."""
    (shown,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    jobs = {job["job_name"]: job for job in yaml.safe_load(shown)["scrape_configs"]}
    served = {f"/memory{route.path}" for route in router.routes}  # type: ignore[attr-defined]
    assert jobs["hearth-gateway"]["metrics_path"] in served
    assert "metrics_path" not in jobs["hearth-worker"]
    named = {name for job in jobs.values() for found in job["dns_sd_configs"] for name in found["names"]}
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    assert named <= set(compose["services"])


def test_the_page_on_operating_lists_every_gauge() -> None:
    """Between its marks are the gauges with their labels and meaning."""
    page = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"<!-- generated: gauges -->\n(.*?)<!-- end -->", page, re.DOTALL)
    lines = ["| gauge | labels | meaning |", "|---|---|---|"]
    for gauge in HealthGauges(overall(PARTS)).collect():
        labels = ", ".join(f"`{label}`" for label in gauge.samples[0].labels)
        lines.append(f"| `{gauge.name}` | {labels} | {gauge.documentation} |")
    assert shown == "".join(f"{line}\n" for line in lines)


def test_what_a_part_can_not_tell_is_no_number() -> None:
    """While the worker or the spool does not answer nothing is shown of it, rather than a nought."""
    away = {name: Part(state="degraded", reasons=("does not answer",)) for name in ("log", "worker")}
    text = exposed(overall(away)).decode()
    names = {line.split("{")[0].split(" ")[0] for line in text.splitlines() if not line.startswith("#")}
    assert names == {"hearth_part_state"}
