"""The same recall with and without concepts: what each costs, and which evidence stands in each. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from hearth.memory.types import Block, Memory, Record, Scored


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A fact, an episode or another record that stands in one of the two blocks."""

    record: Record
    raw: bool
    """Whether the raw block shows it."""
    compacted: bool
    """Whether the compacted block shows it, itself or in a concept."""
    concept: str = ""
    """Id of the concept in which the compacted block has its words; empty where it stands for itself."""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """Two blocks for one question from one search."""

    raw: Block
    compacted: Block
    evidence: tuple[Kept, ...]
    """In the order of their ranks."""


def compared(raw: tuple[Block, Sequence[Scored]], compacted: tuple[Block, Sequence[Scored]]) -> Compared:
    """What a recall without and one with concepts have in them; both are over the same candidates."""
    (block, scored), (shorter, others) = raw, compacted
    concepts = {id: one.id for one in _concepts(others) for id in (rest.id for rest in one.evidence)}
    evidence = []
    for one in scored:
        id = one.record.id
        kept = Kept(
            record=one.record,
            raw=id in block.items,
            compacted=id in shorter.items or id in concepts,
            concept="" if id in shorter.items else concepts.get(id, ""),
        )
        if kept.raw or kept.compacted:
            evidence.append(kept)
    return Compared(raw=block, compacted=shorter, evidence=tuple(evidence))


def _concepts(scored: Sequence[Scored]) -> Iterator[Memory]:
    for one in scored:
        if isinstance(one.record, Memory) and one.record.type == "concept" and one.verdict == "in":
            yield one.record
