"""`hearth tune`: which weights would have ranked better, by what people said and what replies drew on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hearth.gateway.commands.options import Config, Json
from hearth.gateway.commands.output import FAILED, MISUSED, fail, note, say, say_json, table

if TYPE_CHECKING:
    from hearth.config.settings import HearthSettings
    from hearth.memory.events.kinds import Event
    from hearth.memory.recall.tune import Tuned


def tune(
    tenant: Annotated[str, typer.Option("--tenant", help="Whose recalls are learnt from, and weighted.")],
    write: Annotated[
        Path | None,
        typer.Option("--write", help="File for the YAML to paste; else it is shown.", show_default=False),
    ] = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Learn a tenant's weights of the rank score from its log: offline, without a model, changing nothing.

    A third of the recalls is held back, and new weights are proposed only if they order those better. A
    gateway with its own stores has to be stopped first. Exit code 1 if there is too little to learn from.

    Example: hearth tune --tenant acme --config litellm_config.yaml
    """
    from hearth.gateway.commands.settings import load
    from hearth.memory.errors import HearthError
    from hearth.memory.recall.tune import TooFew

    try:
        found = _tuned(load(config).hearth, tenant)
    except TooFew as error:
        fail(
            f"tenant {tenant}: {error}. Replies tell by themselves; `hearth feedback` adds what people think."
        )
    except (HearthError, OSError) as error:
        fail(error)
    if as_json:
        say_json(_document(tenant, found))
    else:
        _show(found)
    if found.better:
        _hand_over(_fragment(tenant, found), write, quiet=as_json)
    else:
        note(f"Nothing is proposed: the weights of {tenant} stay as they are.")


def _tuned(hearth: HearthSettings, tenant: str) -> Tuned:
    from hearth.gateway.weights import weights_of
    from hearth.memory.recall.lessons import lessons_of, signals_in
    from hearth.memory.recall.tune import tune as learn

    events = asyncio.run(_told(hearth, tenant))
    known, own = signals_in(events), weights_of(hearth, tenant)
    weights = {name: getattr(own, name) for name in own.__struct_fields__ if name in known}
    return learn(lessons_of(events, tuple(weights)), weights)


async def _told(hearth: HearthSettings, tenant: str) -> list[Event]:
    from hearth.gateway.servers import servers_of
    from hearth.memory.clock import SystemClock
    from hearth.memory.opening import LOG_FILE, opened_log
    from hearth.memory.recall.lessons import read_told

    servers = servers_of(hearth)
    if not servers.postgres_url and not (hearth.data_dir / LOG_FILE).is_file():
        fail(f"{hearth.data_dir} holds no log; run this where the gateway runs, with its --config", MISUSED)
    async with opened_log(hearth.data_dir, hearth.durability, SystemClock(), servers) as log:
        return await read_told(log, tenant)


def _show(found: Tuned) -> None:
    table(("weight", "old", "new", "change"), _rows(found))
    say("")
    replies = found.recalls - found.judged
    say(f"learnt from {found.recalls} recalls: {found.judged} that people judged, {replies} by their replies")
    before, after, low = (100 * share for share in (found.right_before, found.right_after, found.gain_low))
    say(
        f"of the pairs of {found.held_back} held back {before:.1f}% stood in the right order, with what was "
        f"learnt {after:.1f}%: {after - before:+.1f} points, at least {low:+.1f} in 19 of 20 samples"
    )


def _rows(found: Tuned) -> Iterator[tuple[str, str, str, str]]:
    for name, old in found.old.items():
        change = found.new[name] - old
        yield name, f"{old:g}", f"{found.new[name]:g}", f"{change:+.3f}" if abs(change) >= 5e-4 else ""


def _document(tenant: str, found: Tuned) -> dict[str, object]:
    import msgspec

    document: dict[str, object] = msgspec.to_builtins(found)
    return {"tenant": tenant, **document, "gain": round(found.right_after - found.right_before, 4)}


def _fragment(tenant: str, found: Tuned) -> str:
    import yaml

    changed = {name: value for name, value in found.new.items() if value != found.old[name]}
    return yaml.safe_dump(
        {"hearth": {"tenants": {tenant: {"weights": changed}}}}, allow_unicode=True, sort_keys=False
    )


def _hand_over(fragment: str, write: Path | None, *, quiet: bool) -> None:
    if write is None:
        note("For the YAML file, to be pasted into `hearth`:")
        if not quiet:
            say(fragment.rstrip())
        return
    try:
        write.write_text(fragment, encoding="utf-8")
    except OSError as error:
        fail(f"{write} can't be written: {error}", FAILED)
    note(f"written to {write}; paste it into `hearth` of the YAML file")
