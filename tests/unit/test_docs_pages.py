"""What the pages on embedding, extending and operating say is what the code does."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from prometheus_client import Counter, Histogram

from hearth.memory import Engine, Scope, open_memory
from hearth.memory import metrics as module

ROOT = Path(__file__).parents[2]
ALICE = Scope(tenant="acme", user="alice")
PATIENCE = 30


def _page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def _metrics() -> str:
    """The table of all metrics, in the order of their definition."""
    lines = ["| metric | kind | labels | meaning |", "|---|---|---|---|"]
    for metric in vars(module).values():
        if isinstance(metric, Counter | Histogram):
            name = metric._name + ("_total" if isinstance(metric, Counter) else "")
            labels = ", ".join(f"`{label}`" for label in metric._labelnames)
            lines.append(f"| `{name}` | {metric._type} | {labels} | {metric._documentation} |")
    return "\n".join(lines)


def test_the_table_of_metrics_is_the_registrys_own() -> None:
    """Between its marks the page lists every metric with its kind, labels and meaning."""
    (shown,) = re.findall(r"<!-- generated: metrics -->\n(.*?)\n<!-- end -->", _page("operate.md"), re.DOTALL)
    assert shown == _metrics()


def test_the_examples_in_the_docs_are_the_files() -> None:
    """One example stands in the page whole, of the other the part that differs."""
    page = _page("embed.md")
    assert (ROOT / "examples" / "with_openai.py").read_text(encoding="utf-8") in page
    other = (ROOT / "examples" / "with_anthropic.py").read_text(encoding="utf-8")
    assert other[other.index("async def turn") : other.index("async def main")].strip() in page


def test_every_file_that_the_pages_name_exists() -> None:
    """Paths in backquotes that start at a folder of the repository lead somewhere."""
    for name in ("how-it-works.md", "extend.md", "operate.md", "embed.md"):
        for path in re.findall(
            r"`((?:memory|gateway|config|tests|benchmarks|examples)/[\w./-]*)`", _page(name)
        ):
            assert (ROOT / path).exists(), f"{name}: {path}"


def test_every_verb_of_the_library_is_the_engines() -> None:
    """The table names methods that there are, and every error it names can be imported from one place."""
    import hearth.memory

    rows = re.findall(r"^\| (`\w+\(.*?)\|[^|]*\|(.*)\|$", _page("embed.md"), re.MULTILINE)
    verbs = {verb for row, _ in rows for verb in re.findall(r"`(\w+)\(", row)}
    assert {"recall", "capture", "remember", "search", "forget"} <= verbs
    assert all(callable(getattr(Engine, verb)) for verb in verbs)
    errors = {error for _, cell in rows for error in re.findall(r"`(\w+)`", cell)}
    assert errors <= set(hearth.memory.__all__)


async def _filled(memory: Engine, count: int) -> None:
    """Wait until long-term memory is filled from the log."""
    async with asyncio.timeout(PATIENCE):
        while await memory.long_term.count(ALICE.owner) < count:  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.05)


async def test_a_copy_of_the_log_alone_brings_memory_back(tmp_path: Path) -> None:
    """The backup shown, made while memory is open, restores a session, a memory and what recall finds."""
    (code,) = re.findall(r"^```python\n(.*?)^```", _page("operate.md"), re.MULTILINE | re.DOTALL)
    shown: dict[str, object] = {}
    exec(code, shown)
    back_up = shown["back_up"]
    assert callable(back_up)
    async with open_memory(tmp_path / "live") as memory:
        await memory.capture(ALICE, "My sister Ludmila lives in Valparaíso.", "Noted.")
        await memory.remember(ALICE, "Allergic to kiwi.")
        await memory.drain()
        await asyncio.to_thread(back_up, str(tmp_path / "live"), str(tmp_path / "copy"))
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["log.db"]
    async with open_memory(tmp_path / "copy") as memory:
        await _filled(memory, 2)
        found = await memory.recall(ALICE, "Where does my sister live?", deadline=PATIENCE)
        assert "Valparaíso" in found.block.text
        assert len(await memory.sessions("acme", "alice")) == 1
