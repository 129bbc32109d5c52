"""A log whose payloads are encrypted: what its files hold, rotation, destroyed keys, and refusals."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from hearth.gateway.cli import app
from hearth.gateway.flow import Flow
from hearth.memory.encryption.master import MasterKeyMissing, MasterKeys
from hearth.memory.engine import Engine
from hearth.memory.errors import UnknownEvent
from hearth.memory.events.archive import ArchiveFolder
from hearth.memory.events.archiving import Archiving
from hearth.memory.events.copying import copy, finish
from hearth.memory.events.data_keys import Keyring
from hearth.memory.events.kinds import KnowledgeLoaded, SessionSummarised, TenantErased
from hearth.memory.events.postgres_log import PostgresLog
from hearth.memory.events.sql_log import SqlLog
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.extract.attributes import value_key
from hearth.memory.migrating import Installation
from hearth.memory.opening import Servers, open_memory
from hearth.memory.ports import EventFilter, MemoryFilter
from hearth.memory.rekeying import encrypt_rest, keys_held, rotate
from hearth.memory.replaying import replay
from hearth.memory.types import EVERYBODY, OFFICE, Chunk, Document, Scope, SummaryLine
from hearth.memory.working import CONSUMERS
from tests.encrypted import MASTERS
from tests.events import START, ManualClock, erase, event, memory, page, step
from tests.flow import Talker

PLAIN = "hearth.testing.embedder:plain"
WORD = "elephant"
"""In every text that the tests tell."""
NEWER = MasterKeys([b"fedcba9876543210" * 2, b"0123456789abcdef" * 2])
NEWEST_ALONE = MasterKeys([b"fedcba9876543210" * 2])
LATER = START.replace(year=START.year + 1)
OWNER = Scope(tenant="acme", user="alice").owner

Opens = Callable[..., Any]


@pytest.fixture(name="opened", params=["sqlite", "postgres"])
def _opened(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Opens:
    """Opens one and the same log again and again, by the master keys that are given."""
    schema = f"t{uuid4().hex}"

    @asynccontextmanager
    async def opens(masters: MasterKeys | None) -> AsyncIterator[SqlLog]:
        archive = ArchiveFolder(tmp_path / "archive")
        log: SqlLog
        if request.param == "sqlite":
            log = SqliteLog(tmp_path / "log.db", clock=clock, archive=archive, masters=masters)
        else:
            url = request.getfixturevalue("postgres_url")
            log = PostgresLog(
                url, schema=schema, clock=clock, server_clock=clock, archive=archive, masters=masters
            )
        async with AsyncExitStack() as stack:
            stack.push_async_callback(log.close)
            await log.start()
            yield log

    return opens


async def fill(log: SqlLog) -> None:
    """Texts of every sort, of alice, bob and everybody."""
    chunk = Chunk(text=f"Handbook of the {WORD}", path=(f"On the {WORD}",))
    document = Document(
        title=f"The {WORD}", id="d1", name="book", version=1, chunks=1, by="root", loaded_at=START
    )
    summed = SummaryLine(page="x1", at=START, text=f"Told of an {WORD}.")
    await log.append(
        [
            step("x1", user_text=f"I saw an {WORD}", reply_text=f"An {WORD}?", id="step-1"),
            page("x1", user_text=f"I saw an {WORD}", reply_text=f"An {WORD}?"),
            memory(f"owns an {WORD}", id="m1", subject=f"{WORD} keeper", attribute="plays", value=WORD),
            memory(
                f"feeds an {WORD}",
                id="m2",
                user="bob",
                subject="user",
                attribute="plays",
                value=WORD,
                type="fact",
            ),
            memory(f"likes an {WORD}", id="m3", subject="user", attribute="plays", value=WORD, type="fact"),
            event(
                SessionSummarised(owner=OWNER, session="s1", lines=(summed,)),
                session="s1",
            ),
            event(KnowledgeLoaded(document=document, chunks=(chunk,)), user=EVERYBODY),
        ]
    )


async def check_reads(log: SqlLog) -> None:
    """Everything of `fill` is read, by each way that looks at texts."""
    events = await log.read()
    assert len(events) == 7
    assert all(WORD in str(one.payload) or one.kind == "knowledge.loaded" for one in events)
    found = await log.find(EventFilter(tenant="acme", words=f"owns {WORD}"))
    assert [one.payload.memory.id for one in found.events] == ["m1"]  # type: ignore[union-attr]
    assert (await log.pages("acme", "alice", limit=5))[0].user_text == f"I saw an {WORD}"
    where = MemoryFilter(words="Elephant OWNS")
    assert [one.id for one in await log.memories("acme", "alice", where=where, after=None, limit=9)] == ["m1"]
    assert await log.count_memories("acme", "alice", where=where) == 1
    about = [("Elephant keeper", "plays")]
    assert [one.id for one in await log.facts_about("acme", "alice", about)] == ["m1"]
    (session,) = await log.sessions("acme", "alice", after=None, limit=5)
    assert [line.text for line in session.summary] == [f"Told of an {WORD}."]
    (common,) = await log.common("acme", attributes=["plays"], least=2, limit=5)
    assert (common.value, common.users) == (value_key(WORD), 2)
    (chunk,) = await log.chunks("acme", "d1", version=1, limit=5)
    assert WORD in chunk.text
    checked = await log.check("acme", "alice")
    assert (checked.events, checked.unsealed, checked.damaged) == (5, 0, ())


def files_with(folder: Path, text: str = WORD) -> list[str]:
    """Files that hold the text, in small letters or with a capital one."""
    told = [text.encode(), text.capitalize().encode()]
    files = [(path.name, path.read_bytes()) for path in folder.rglob("*") if path.is_file()]
    return [name for name, raw in files if any(one in raw for one in told)]


async def tables_with(log: SqlLog, text: str = WORD) -> list[str]:
    """Tables with a text or bytes that hold the text as it is."""

    def look(db: Any) -> list[str]:
        found = []
        for name in (
            "payloads",
            "memories",
            "summaries",
            "documents",
            "chunks",
            "labels",
            "events",
            "parked",
        ):
            rows = db.execute(f"SELECT * FROM {name}").fetchall()
            if text in str(rows).lower():
                found.append(name)
        return found

    return await log.ask(look)


async def test_what_is_told_is_in_no_file(opened: Opens, tmp_path: Path) -> None:
    """Neither in the log nor in its write-ahead log and archives, and all is read as before."""
    async with opened(MASTERS) as log:
        await fill(log)
        await check_reads(log)
        (first, *_) = await log.read(limit=1)
        await log.park("index", first, f"ValueError('{WORD}')")
        assert [error for _, _, error in await log.parked()] == [f"ValueError('{WORD}')"]
        assert files_with(tmp_path) == []
        assert await tables_with(log) == []
        archiving = Archiving(log, owner="test")
        assert (await archiving.archive("acme", LATER)).events == 4
        assert files_with(tmp_path) == []
        await check_reads(log)
        await log.rebuild_views()
        await check_reads(log)
    async with opened(MASTERS) as log:
        await check_reads(log)
    assert files_with(tmp_path) == []


async def test_without_its_master_key_a_log_is_refused(opened: Opens) -> None:
    """Without any, and with another one; nothing is written in the meantime."""
    async with opened(MASTERS) as log:
        await fill(log)
    for wrong in (None, NEWEST_ALONE):
        with pytest.raises(MasterKeyMissing, match=r"hearth\.encryption\.keys"):
            async with opened(wrong):
                pass
    async with opened(MASTERS) as log:
        await check_reads(log)


@pytest.mark.parametrize("renew", [False, True])
async def test_after_a_rotation_the_older_master_key_can_go(opened: Opens, renew: bool) -> None:
    """Every data key is wrapped by the newest one, and what is said after it is read too."""
    async with opened(MASTERS) as log:
        await fill(log)
    async with opened(NEWER) as log:
        assert isinstance(log.keys, Keyring)
        done = await rotate(log, log.keys, renew=renew)
        assert (done.wrapped, done.made) == (3, 3 if renew else 0)
        assert (await rotate(log, log.keys, renew=False)).wrapped == 0
    async with opened(NEWEST_ALONE) as log:
        await check_reads(log)
        await log.append([memory("rides it", id="m4")])
        assert (await keys_held(log)).masters == {NEWEST_ALONE.newest: 6 if renew else 3}
        assert await log.memory("acme", "alice", "m4") is not None


async def test_an_erasure_destroys_the_keys(opened: Opens) -> None:
    """A payload put back from a copy is not read any more; others' are, and the user's new ones."""

    def put_back(db: Any) -> None:
        for seq, version, body, seal in kept:
            db.execute(
                "INSERT INTO payloads (seq, version, body, seal) VALUES (?, ?, ?, ?)",
                (seq, version, body, seal),
            )

    async with opened(MASTERS) as log:
        await fill(log)
        kept = await log.ask(
            lambda db: db.execute(
                "SELECT seq, version, body, p.seal FROM payloads p JOIN events e USING (seq)"
                " WHERE e.id = 'step-1'"
            ).fetchall()
        )
        await log.append([erase(2)])
        await log.append([memory("likes tea", id="m5", generation=2)])
        assert await log.keys_left("acme", "alice") == 0
        await log.change(put_back, relaxed=False)
    async with opened(MASTERS) as log:
        with pytest.raises(UnknownEvent, match="its key was destroyed"):
            await log.read(tenant="acme", user="alice", kinds=["step.captured"])
        assert await log.memory("acme", "alice", "m5") is not None
        assert await log.memory("acme", "bob", "m2") is not None


async def test_a_tenants_erasure_leaves_no_key_of_its_users(encrypted_log: SqliteLog) -> None:
    """All of them wait for it at once, and are gone one by one; the office keeps its own."""
    log = encrypted_log
    await log.append([step(), step(user="bob"), event(TenantErased(generation=2), user=OFFICE)])
    assert await log.keys_left("acme", None) == 2
    for one in await log.closed_users("acme", limit=9):
        await log.append([erase(one.generation, user=one.user)])
    assert await log.keys_left("acme", None) == 0
    assert [one.kind for one in await log.read(tenant="acme", user=OFFICE)] == ["tenant.erased"]


async def test_a_payload_is_read_in_its_place_alone(encrypted_log: SqliteLog) -> None:
    """Not as another event's, not as another user's, not altered: `check` names each."""
    log = encrypted_log
    told = [step(f"x{n}", user_text=f"{WORD} {n}", id=f"e{n}") for n in range(3)]
    await log.append([*told, step("y", user=EVERYBODY, user_text="mine", id="e3")])

    def move(db: Any) -> None:
        def body(id: str) -> str:
            return f"(SELECT p.body FROM payloads p JOIN events e USING (seq) WHERE e.id = '{id}')"

        at = "(SELECT seq FROM events WHERE id = ?)"
        db.execute(f"UPDATE payloads SET body = {body('e1')} WHERE seq = {at}", ("e0",))
        db.execute(f"UPDATE payloads SET body = {body('e1')} WHERE seq = {at}", ("e3",))
        db.execute(
            f"UPDATE payloads SET body = CAST(substr(body, 1, 40) || x'00' AS BLOB) WHERE seq = {at}", ("e2",)
        )

    await log.change(move)
    found = await log.find(EventFilter(tenant="acme"))
    assert [one.id for one in found.events] == ["e1"]
    assert [(one.id, "can't be decrypted" in one.reason) for one in found.unreadable] == [
        (id, True) for id in ("e0", "e2", "e3")
    ]
    assert [one.id for one in (await log.check("acme", "alice")).damaged] == ["e0", "e2"]


async def test_what_was_said_before_is_encrypted_on_demand(opened: Opens, tmp_path: Path) -> None:
    """A log from before is read as it is, new payloads are encrypted, and `apply` sees to the rest."""
    async with opened(None) as log:
        await fill(log)
        await Archiving(log, owner="test").archive("acme", LATER)
    async with opened(MASTERS) as log:
        await check_reads(log)
        await log.append([memory("likes tea", id="m6", user="carol")])
        held = await keys_held(log)
        assert (held.payloads, held.readable) == (8, 7)
        assert await encrypt_rest(log, Archiving(log, owner="test")) == 7
        assert (await keys_held(log)).readable == 0
        assert await tables_with(log) == []
        assert not list((tmp_path / "archive").glob("*.zst"))
        await log.truncate()
    assert files_with(tmp_path) == []
    async with opened(MASTERS) as log:
        assert (await log.memory("acme", "carol", "m6")) is not None


async def test_a_conversation_is_in_no_file_and_is_recalled(tmp_path: Path, clock: ManualClock) -> None:
    """Through the gateway's flow: log, short-term and long-term memory and spool say nothing of it, after
    a replay too; the next session has it, and an erasure ticks its keys.
    """
    open_ = partial(
        open_memory,
        tmp_path,
        embedder=PLAIN,
        durability="process",
        clock=clock,
        servers=Servers(masters=MASTERS),
    )
    async with open_() as engine:
        talker = Talker(Flow(engine), clock)
        await talker.say(f"The {WORD} that I own is called Nellie.", f"A fine name for an {WORD}.")
        scope = talker.who.scope
        await engine.remember(scope, f"Feeds the {WORD} at noon", tags=["animals"])
        await engine.drain()
        await engine.long_term.flush()
        again = Talker(Flow(engine), clock)
        await again.say(f"What is my {WORD} called?")
        assert "is called Nellie" in again.prompt()
        view = await engine.short_term.latest(scope, limit=5)
        assert view.pages[0].user_text == f"The {WORD} that I own is called Nellie."
        await engine.drain()
        assert files_with(tmp_path) == []
    place = Installation(
        home=tmp_path, spool=tmp_path / "spool", servers=Servers(masters=MASTERS), embedder=PLAIN
    )
    done = await replay(place, ("views", "long-term", "short-term"), lambda *_: None)
    assert (done.records, done.embedded) == (3, 0)
    assert files_with(tmp_path) == []
    async with open_() as engine:
        where = MemoryFilter(words="noon")
        (found,) = await engine.search(scope, f"When is the {WORD} fed?", where=where)
        assert found.record == (await engine.memories("acme", "alice"))[0]
        receipt = (await engine.eraser.begin("user", "acme", "alice")).receipt
        await engine.drain()
        assert await engine.search(scope, f"When is the {WORD} fed?") == []
        await ticked(engine, receipt.id, "keys")


async def ticked(engine: Engine, id: str, place: str) -> None:
    """Wait until an erasure is over in that place."""
    for _ in range(200):
        receipt = await engine.office.erasure("acme", id)
        if receipt is not None and place not in receipt.pending:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(receipt)


def test_the_command_line_makes_turns_on_and_rotates_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key is made, what was there is encrypted, another key takes over, and the first is not needed. The
    acts themselves are two payloads more, of one who is no user.
    """
    run, config = CliRunner(), tmp_path / "hearth.yaml"
    models = [{"model_name": "m", "litellm_params": {"model": "openai/m"}}]

    def configure(*keys: str) -> None:
        hearth = {"data_dir": str(tmp_path), "keyless": True}
        hearth |= {"encryption": {"keys": [f"os.environ/{key}" for key in keys]}} if keys else {}
        config.write_text(json.dumps({"model_list": models, "hearth": hearth}))

    def say(*words: str, keys: Sequence[str]) -> dict[str, Any]:
        configure(*keys)
        done = run.invoke(app, ["encryption", *words, "--json", "--config", str(config)])
        assert done.exit_code == 0, done.output
        return dict(json.loads(done.stdout))

    async def begin() -> None:
        log = SqliteLog(tmp_path / "log.db", clock=ManualClock())
        await log.start()
        await fill(log)
        await log.close()

    asyncio.run(begin())
    names = []
    for variable in ("NEW_MASTER", "OLD_MASTER"):
        made = json.loads(run.invoke(app, ["encryption", "new-key", "--json"]).stdout)
        monkeypatch.setenv(variable, made["key"])
        names.append(made["name"])
    assert say("apply", keys=["OLD_MASTER"]) == {"encrypted": 7}
    assert say("rotate", "--data-keys", keys=["NEW_MASTER", "OLD_MASTER"]) == {"wrapped": 4, "made": 4}
    held = {"configured": [names[0]], "data_keys": {names[0]: 8}, "payloads": 9, "readable": 0}
    assert say("status", keys=["NEW_MASTER"]) == held
    configure("OLD_MASTER")
    refused = run.invoke(app, ["encryption", "status", "--config", str(config)])
    assert (refused.exit_code, names[0] in refused.output) == (1, True)
    configure()
    refused = run.invoke(app, ["encryption", "status", "--config", str(config)])
    assert (refused.exit_code, "hearth.encryption.keys" in refused.output) == (1, True)


async def test_a_copy_of_the_log_is_read_by_the_same_master_key(
    tmp_path: Path, clock: ManualClock, postgres_url: str
) -> None:
    """From a file to a server, payloads in archives too: nothing is decrypted on the way, and all is read."""
    archive, schema = ArchiveFolder(tmp_path / "archive"), f"t{uuid4().hex}"
    here = SqliteLog(tmp_path / "log.db", clock=clock, archive=archive, masters=MASTERS, copying=True)
    there = PostgresLog(postgres_url, schema=schema, clock=clock, masters=MASTERS, copying=True)
    await here.start()
    await there.start()
    await fill(here)
    await Archiving(here, owner="test").archive("acme", LATER)
    copied = await copy(here, there, CONSUMERS, lambda *_: None)
    assert not copied.differences
    await finish(there)
    await check_reads(there)
    assert await tables_with(there) == []
    await there.close()
    await here.close()
