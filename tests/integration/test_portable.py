"""Export and import: all of a user out into a file, and in again, here and elsewhere."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hearth.memory.errors import BadInput, LogUnavailable
from hearth.memory.events.kinds import Event
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.portable import taking
from hearth.memory.portable.exporting import exported
from hearth.memory.portable.form import Limits
from hearth.memory.ports import MemoryFilter
from hearth.memory.types import Scope
from tests.api import Api, open_api
from tests.events import ManualClock, forget_page, page, step

ALICE = Scope(tenant="acme", user="alice")
BOB = Scope(tenant="acme", user="bob")


async def _export(api: Api, scope: Scope = ALICE) -> bytes:
    return b"".join([part async for part in api.engine.porter.export(scope)])


async def _take(api: Api, file: bytes, scope: Scope = ALICE, **options: Any) -> Any:
    return await api.engine.porter.take(scope, io.BytesIO(file), limits=Limits(), **options)


async def _all(api: Api, scope: Scope = ALICE) -> dict[str, Any]:
    """All that the log's views say of a user, but for generations and events' places."""
    log, user = api.engine.log, (scope.tenant, scope.user)
    memories = await log.memories(*user, where=MemoryFilter(include_superseded=True), after=None, limit=500)
    exchanges = await log.exchanges(*user, session=None, after=None, limit=500)
    segments = await api.engine.mid_term.segments(*user, scope.owner)
    return {
        "memories": memories,
        "exchanges": exchanges,
        "sessions": await log.sessions(*user, after=None, limit=100),
        "pages": await log.pages(*user, limit=500),
        "segments": [(one.segment, one.heat, one.episode, one.state) for one in segments],
    }


async def _talk(api: Api, scope: Scope, turns: int) -> None:
    for n in range(turns):
        await api.engine.capture(scope, f"I told you of the kiwi {n} and the bees 🐝", f"Noted {n}.")
    await api.engine.drain()


async def test_case_62_export_and_import_round_trip(tmp_path: Path, clock: ManualClock) -> None:
    """Same instance: nothing changes. An empty one: the same records, found by recall. Twice: no change."""
    async with open_api(tmp_path / "a", clock=clock) as here, open_api(tmp_path / "b", clock=clock) as there:
        engine = here.engine
        await _talk(here, Scope(tenant="acme", user="alice", session="s1"), 14)
        first = await engine.remember(ALICE, "I work at Acme 🏢", attribute="employer", value="Acme")
        clock.advance(seconds=60)
        await engine.remember(
            ALICE,
            "I work at Globex",
            attribute="employer",
            value="Globex",
            metadata={"n": 1},
            tags=["job"],
            pinned=True,
        )
        gone = await engine.remember(ALICE, "My PIN is a poem")
        await engine.forget(ALICE, gone.id)
        await engine.remember(BOB, "Bob keeps goats")
        await engine.drain()
        before, bobs = await _all(here), await _all(here, BOB)
        assert any(memory.id == first.id and memory.successor for memory in before["memories"])
        assert before["segments"]
        file = await _export(here)
        assert b"poem" not in file
        assert b"goats" not in file

        again = await _take(here, file)
        assert (again.added, again.skipped) == (0, {"known": again.read})
        assert (await _all(here), await _all(here, BOB)) == (before, bobs)

        taken = await _take(there, file)
        assert (taken.added, taken.skipped) == (taken.read, {})
        await there.engine.drain()
        assert await _all(there) == before
        assert (await there.engine.recall(ALICE, "Where do I work?")).block.text.count("Globex") == 1
        twice = await _take(there, file)
        assert (twice.added, twice.skipped) == (0, {"known": taken.read})
        assert _kinds(await _export(there)) == _kinds(file)

        as_bob = await _take(there, file, Scope(tenant="rivals", user="bea"))
        assert as_bob.added == taken.read
        await there.engine.drain()
        theirs = await _all(there, Scope(tenant="rivals", user="bea"))
        assert [memory.id for memory in theirs["memories"]] == [memory.id for memory in before["memories"]]
        assert {memory.scope.tenant for memory in theirs["memories"]} == {"rivals"}
        assert await _all(there) == before


async def test_what_is_gone_here_stays_gone(tmp_path: Path, clock: ManualClock) -> None:
    """An old file brings back neither what was forgotten nor an erased user, unless that is asked for."""
    async with open_api(tmp_path, clock=clock) as api:
        memory = await api.engine.remember(ALICE, "I like kiwi")
        await _talk(api, ALICE, 2)
        file = await _export(api)
        clock.advance(seconds=5)
        await api.engine.forget(ALICE, memory.id)
        assert (await _take(api, file)).added == 0
        assert await api.engine.count_memories("acme", "alice") == 0
        clock.advance(seconds=5)
        await api.engine.erase("acme", "alice")
        taken = await _take(api, file)
        assert (taken.added, taken.skipped) == (0, {"erased": taken.read})
        taken = await _take(api, file, anew=True)
        assert taken.added == taken.read
        assert await api.engine.count_memories("acme", "alice") == 1


def _kinds(file: bytes) -> dict[str, int]:
    """Events by kind: what was decided where the file came from is not decided again."""
    kinds: dict[str, int] = json.loads(file.splitlines()[-1])["end"]["kinds"]
    return kinds


@pytest.mark.parametrize("cut", [1, 2])
async def test_a_file_that_is_cut_off_leaves_nothing(tmp_path: Path, cut: int) -> None:
    """Without its last lines a file is refused, and what came before them is not kept."""
    async with open_api(tmp_path / "a") as here, open_api(tmp_path / "b") as there:
        await here.engine.remember(ALICE, "I like kiwi")
        file = await _export(here)
        short = b"".join(file.splitlines(keepends=True)[:-cut])
        with pytest.raises(BadInput, match="cut off"):
            await _take(there, short)
        with pytest.raises(BadInput, match=r"cut off|footer"):
            await _take(there, file[: len(file) - 10 * cut])
        assert await there.engine.count_memories("acme", "alice") == 0


def _sealed(lines: list[bytes]) -> bytes:
    """A file of those lines with a footer that fits them, as somebody who forges one would make it."""
    kinds: dict[str, int] = {}
    for line in lines[1:]:
        kind = json.loads(line)["event"]["payload"]["kind"]
        kinds[kind] = kinds.get(kind, 0) + 1
    body = b"".join(line + b"\n" for line in lines)
    digest = hashlib.sha256(body).hexdigest()
    end = {"end": {"events": len(lines) - 1, "kinds": kinds, "sha256": digest}}
    return body + json.dumps(end, separators=(",", ":")).encode() + b"\n"


def _changed(line: bytes, **fields: Any) -> bytes:
    """The memory's line with other values, by path."""
    document = json.loads(line)
    for path, value in fields.items():
        *parents, last = path.split("__")
        inner = document
        for name in parents:
            inner = inner[name]
        inner[last] = value
    return json.dumps(document, separators=(",", ":")).encode()


MEMORY = "event__payload__memory__"
FORGED: dict[str, tuple[dict[str, Any], str]] = {
    "kind": ({"event__payload": {"kind": "user.erased", "generation": 9}}, "line 3: event.payload.kind"),
    "unknown": ({"event__payload": {"kind": "what.ever"}}, "line 3: event.payload"),
    "newer": ({"version": 99}, "line 3: event.payload"),
    "type": ({f"{MEMORY}importance": "high"}, "line 3"),
    "range": ({f"{MEMORY}importance": 7}, "line 3: event.payload.memory.importance"),
    "empty": ({f"{MEMORY}text": " "}, "line 3: event.payload.memory.text"),
    "naive": ({f"{MEMORY}valid_to": "2025-01-01T00:00:00"}, "line 3: event.payload.memory.valid_to"),
    "year": ({f"{MEMORY}valid_to": "0001-01-01T00:00:00Z"}, "line 3: event.payload.memory.valid_to"),
    "future": ({"event__occurred_at": "2999-01-01T00:00:00Z"}, "line 3: event.occurred_at"),
    "id": ({"event__id": "../1"}, "line 3: event.id"),
    "agent": ({"event__agent": ""}, "line 3: event.agent"),
}


async def test_a_forged_file_is_refused_with_its_line(tmp_path: Path, clock: ManualClock) -> None:
    """Whatever is wrong, the line and the field are named, and the good line before it is not kept."""
    async with open_api(tmp_path, clock=clock) as api:
        await api.engine.remember(BOB, "first")
        await api.engine.remember(BOB, "second")
        lines = (await _export(api, BOB)).splitlines()[:-1]
        broken = {name: (_changed(lines[2], **fields), field) for name, (fields, field) in FORGED.items()}
        broken["twice"] = (lines[1], "line 3: event.id")
        broken["deep"] = (b'{"version":1,"event":{"x":' + b"[" * 100_000, "line 3")
        for name, (line, field) in broken.items():
            raw = b"\n".join([*lines[:2], line, b""]) if name == "deep" else _sealed([*lines[:2], line])
            with pytest.raises(BadInput) as refused:
                await _take(api, raw)
            assert refused.value.field == field, name
        with pytest.raises(BadInput, match="older or newer"):
            await _take(api, (await _export(api, BOB)).replace(b'"version":1', b'"version":2', 1))
        with pytest.raises(BadInput, match="was changed"):
            await _take(api, (await _export(api, BOB)).replace(b"second", b"sacond"))
        assert await api.engine.count_memories("acme", "alice") == 0


async def test_ids_of_others_in_a_file_reach_nobody(tmp_path: Path, clock: ManualClock) -> None:
    """A file that claims another tenant's user, events and records comes in as the importer's own alone."""
    async with open_api(tmp_path, clock=clock) as api:
        theirs = await api.engine.remember(Scope(tenant="rivals", user="eve"), "Eve's own secret diary")
        rivals = await _export(api, Scope(tenant="rivals", user="eve"))
        lines = rivals.splitlines()[:-1]
        forged = _sealed([lines[0], _changed(lines[1], **{f"{MEMORY}text": "overwritten"})])
        async with api.client("alice") as alice, api.client("rival") as eve:
            headers = {"content-type": "application/octet-stream"}
            done = (await alice.post("/import", content=forged, headers=headers)).json()
            assert (done["user"], done["added"]) == ("alice", 1)
            mine = (await alice.get(f"/memories/{theirs.id}")).json()
            own = (await eve.get(f"/memories/{theirs.id}", params={"user": "eve"})).json()
            refused = await alice.get("/export", params={"user": "bob"})
        assert mine["text"] == "overwritten"
        assert own["text"] == "Eve's own secret diary"
        assert refused.status_code == 403


async def test_an_operator_moves_a_user_over_rest(tmp_path: Path, clock: ManualClock) -> None:
    """An admin key exports any user of its tenant, and imports a file as that user or another one."""
    alone: dict[str, Any] = {"life": {"concepts": {"gain": 1000}}}
    """Nothing is summed up meanwhile."""
    async with (
        open_api(tmp_path / "a", clock=clock, settings=alone) as here,
        open_api(tmp_path / "b", clock=clock, settings=alone) as there,
    ):
        for n in range(257):
            await here.engine.remember(ALICE, f"case 61 fact {n}")
        await here.engine.remember(BOB, "Bob keeps goats")
        async with here.client("admin") as admin, there.client("admin") as other:
            file = (await admin.get("/export", params={"user": "alice"})).content
            text = (await admin.get("/export", params={"user": "alice", "format": "markdown"})).text
            headers = {"content-type": "application/octet-stream"}
            done = (await other.post("/import", content=file, headers=headers)).json()
            second = (await other.post("/import?user=carol", content=file, headers=headers)).json()
        told = Counter(
            one.kind for one in await there.engine.log.read(tenant="acme", user="alice", limit=1000)
        )
        assert (done["user"], done["format"], done["added"], told) == (
            *("alice", "hearth", 257),
            {"memory.added": 257},
        )
        assert (second["user"], second["added"]) == ("carol", 257)
        for user in ("alice", "carol"):
            assert await there.engine.count_memories("acme", user) == 257
        assert text.count("case 61 fact") == 257
        assert "goats" not in text


async def test_a_page_that_is_forgotten_here_takes_its_segment_along(
    tmp_path: Path, clock: ManualClock
) -> None:
    """Nothing of a file tells of a page whose tombstone is here: no text, no keyword of its segment."""
    async with open_api(tmp_path / "a", clock=clock) as here, open_api(tmp_path / "b", clock=clock) as there:
        await _talk(here, Scope(tenant="acme", user="alice", session="s1"), 14)
        members = await here.engine.mid_term.segments("acme", "alice", ALICE.owner)
        segmented = {one.id: await here.engine.mid_term.pages_in("acme", "alice", one.id) for one in members}
        segment, pages = next(iter(segmented.items()))
        await there.engine.log.append([forget_page(pages[0].id, at=clock.now())])
        taken = await _take(there, await _export(here))
        assert taken.skipped["forgotten"] >= 4
        assert taken.added + taken.skipped["forgotten"] == taken.read
        held = await there.engine.exchanges("acme", "alice", limit=100)
        assert pages[0].id not in {exchange.id for exchange in held}
        assert len(held) == 13
        assert segment not in {one.id for one in await there.engine.mid_term.segments(*_USER, ALICE.owner)}


_USER = ("acme", "alice")


async def test_what_no_decider_has_come_to_is_decided_elsewhere(sqlite_log: SqliteLog) -> None:
    """An event is marked as decided once every decider of its kind has passed it."""
    deciders = {"pages": ("step.captured",), "facts": ("page.closed",)}

    async def marks() -> list[bool]:
        parts = exported(sqlite_log, ALICE, clock=ManualClock(), deciders=deciders)
        lines = b"".join([part async for part in parts]).splitlines()[1:-1]
        return [json.loads(line)["event"]["payload"]["decided"] for line in lines]

    await sqlite_log.append([step("x"), page("x")])
    assert await marks() == [False, False]
    lease = await sqlite_log.lease("pages", 0, owner="me", seconds=30)
    assert lease is not None
    await sqlite_log.advance(lease, seq=1)
    assert await marks() == [True, False]


async def test_the_file_that_the_docs_show_can_be_imported(tmp_path: Path) -> None:
    """Header, event and footer of the page are a whole file."""
    shown = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
    (file,) = re.findall(r"^```json\n(.*?)^```", shown, re.MULTILINE | re.DOTALL)
    async with open_api(tmp_path, clock=ManualClock()) as api:
        assert (await _take(api, file.encode())).added == 1
        (memory,) = await api.engine.memories("acme", "alice")
        assert memory.pinned


async def test_an_import_goes_on_where_it_was_cut_short(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log fails at the second append; the same file again adds what is missing and nothing else."""
    monkeypatch.setattr(taking, "BATCH_EVENTS", 4)
    async with open_api(tmp_path / "a", clock=clock) as here, open_api(tmp_path / "b", clock=clock) as there:
        for number in range(10):
            await here.engine.remember(ALICE, f"fact {number}")
        file, append, calls = await _export(here), there.engine.log.append, 0

        async def failing(events: Sequence[Event]) -> None:
            nonlocal calls
            calls += 1
            if calls == 2:
                raise LogUnavailable
            await append(events)

        monkeypatch.setattr(there.engine.log, "append", failing)
        with pytest.raises(LogUnavailable):
            await _take(there, file)
        taken = await _take(there, file)
        assert (taken.read, taken.added, taken.skipped) == (10, 6, {"known": 4})
        assert await there.engine.count_memories("acme", "alice") == 10


async def test_an_isolated_agent_s_file_has_its_own_alone(tmp_path: Path, clock: ManualClock) -> None:
    """By the owner: not what was said to an agent of its name by keys that share, in sessions of one name
    too; what was forgotten is told to whose it was.
    """
    shared = Scope(tenant="acme", user="alice", agent="hermit", session="s")
    own = Scope(tenant="acme", user="alice", agent="hermit", session="s", isolated=True)
    async with open_api(tmp_path, clock=clock) as api:
        for scope, animal in ((shared, "goats"), (own, "bees")):
            await api.engine.capture(scope, f"I keep {animal}.", f"Nice {animal}.")
            gone = await api.engine.remember(scope, f"{animal} that are forgotten")
            await api.engine.remember(scope, f"Likes {animal}")
            await api.engine.drain()
            await api.engine.forget(scope, gone.id)
        await api.engine.drain()
        markdown = b"".join([part async for part in api.engine.porter.markdown(own)])
        everything = b"".join([part async for part in api.engine.porter.markdown(ALICE)])
        file = await _export(api, own)
        for told in (markdown, file):
            assert b"Nice bees." in told
            assert b"Likes bees" in told
            assert b"goats" not in told
        assert b'"memory.forgotten":1' in file.replace(b" ", b"")
        assert [everything.count(b"I keep " + animal) for animal in (b"goats", b"bees")] == [1, 1]
