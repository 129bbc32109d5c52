"""`hearth tune` over a real log, and the weights that it proposes in use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hearth.config.load import parse_settings
from hearth.gateway.cli import app
from hearth.gateway.weights import weights_of
from hearth.memory.events.kinds import Event
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.recall.policy import Weights
from hearth.memory.types import Scope
from hearth.testing.embedder import ScriptedEmbedder
from tests.api import open_engine
from tests.events import ManualClock
from tests.told import IN_FORCE, LAST, SHIFTED, drawn


async def filled(home: Path, events: Iterator[Event]) -> None:
    """A log of those events in the folder."""
    log = SqliteLog(home / "log.db", durability="process", clock=ManualClock())
    await log.start()
    await log.append(list(events))
    await log.close()


def tune(home: Path, *options: str, tenant: str = "acme", settings: str = "") -> Result:
    """`hearth tune` with a configuration whose memory is in the folder."""
    config = home / "conf.yaml"
    config.write_text(f"hearth:\n  data_dir: {home}\n  keyless: true\n{settings}")
    arguments = ["tune", "--tenant", tenant, "--config", str(config), *options]
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})


@pytest.fixture(name="taught", scope="module")
def _taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import asyncio

    home = tmp_path_factory.mktemp("taught")
    asyncio.run(filled(home, drawn(200, SHIFTED, noise=0.1)))
    return home


def test_better_weights_are_shown_and_can_be_pasted(taught: Path) -> None:
    """A row a weight, the gain on what was held back, and YAML that the configuration takes as it is."""
    found = tune(taught)
    assert found.exit_code == 0, found.output
    for said in ("weight", *IN_FORCE, "learnt from 200 recalls: 0 that people judged, 200 by their replies"):
        assert said in found.stdout
    fragment = found.stdout[found.stdout.index("hearth:") :]
    settings = parse_settings(fragment + "  keyless: true\n", {})
    weights = weights_of(settings.hearth, "acme")
    assert getattr(weights, LAST) > 3 * IN_FORCE[LAST]
    assert weights_of(settings.hearth, "rivals") == Weights()


def test_the_same_as_json_and_into_a_file(taught: Path) -> None:
    """One document on stdout; the file holds the proposal, and nothing else is changed."""
    target = taught / "tuned.yaml"
    found = tune(taught, "--json", "--write", str(target))
    document = json.loads(found.stdout)
    assert (document["tenant"], document["recalls"], document["old"]) == ("acme", 200, IN_FORCE)
    assert document["gain"] == pytest.approx(document["right_after"] - document["right_before"], abs=1e-4)
    weights = weights_of(parse_settings(target.read_text() + "  keyless: true\n", {}).hearth, "acme")
    assert {name: getattr(weights, name) for name in IN_FORCE} == document["new"]
    assert tune(taught, "--write", str(taught / "nowhere" / "f.yaml")).exit_code == 1


def test_weights_in_force_are_where_learning_begins(taught: Path) -> None:
    """A tenant that has them already is proposed no change."""
    own = "".join(f"        {name}: {value}\n" for name, value in SHIFTED.items())
    found = tune(taught, settings=f"  tenants:\n    acme:\n      weights:\n{own}")
    assert found.exit_code == 0, found.output
    assert "hearth:" not in found.stdout
    assert "Nothing is proposed" in found.stderr


def test_what_cannot_be_learnt_from_is_said(taught: Path, tmp_path: Path) -> None:
    """Another tenant has too few recalls, which is one line with the number needed; no log is a misuse."""
    few = tune(taught, tenant="rivals")
    assert (few.exit_code, few.stdout, few.stderr.count("\n")) == (1, "", 1)
    assert "tenant rivals: 0 recalls" in few.stderr
    assert "at least 50 are needed" in few.stderr
    assert tune(tmp_path).exit_code == 2
    assert list(tmp_path.iterdir()) == [tmp_path / "conf.yaml"]


async def test_a_tenants_weights_rank_its_recalls(tmp_path: Path, clock: ManualClock) -> None:
    """Another tenant's recalls of the same are ranked as before."""
    own = {"acme": Weights(**{name: 10 * weight for name, weight in IN_FORCE.items()})}
    scores = {}
    async with open_engine(tmp_path, clock, ScriptedEmbedder(), weights=own) as engine:
        for tenant in ("acme", "rivals"):
            scope = Scope(tenant=tenant, user="alice")
            await engine.remember(scope, "likes green tea")
            await engine.drain()
            recall = await engine.recall(scope, "likes green tea")
            scores[tenant] = recall.scored[0].score
    assert scores["acme"] > 5 * scores["rivals"] > 0


@pytest.mark.parametrize("weights", ["{txt: 1.0}", "{text: 1000}", "{text: much}", "{recency_days: 0}"])
def test_a_weight_that_there_is_not_is_an_error_of_the_configuration(tmp_path: Path, weights: str) -> None:
    """Its place, what it has, and what would be right are named."""
    found = tune(tmp_path, settings=f"  tenants:\n    acme:\n      weights: {weights}\n")
    assert found.exit_code == 2
    assert "hearth.tenants.acme.weights" in found.stderr
    assert "expected" in found.stderr
