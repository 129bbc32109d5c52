"""Counters and timings of the engine, in a registry of their own that the gateway serves."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

REGISTRY = CollectorRegistry()

_MILLISECONDS = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.0, 2.0)

RECALLS = Counter("hearth_recalls", "Recalls by status.", ["status"], registry=REGISTRY)
RECALL_SECONDS = Histogram(
    "hearth_recall_seconds", "Time of a whole recall.", buckets=_MILLISECONDS, registry=REGISTRY
)
RECALL_MISSING = Counter(
    "hearth_recall_missing", "Parts that a recall had to do without.", ["part"], registry=REGISTRY
)
INJECTED_ITEMS = Counter(
    "hearth_injected_items",
    "Recalled items in the prompts of exchanges that were answered.",
    registry=REGISTRY,
)
DRAWN_ITEMS = Counter(
    "hearth_drawn_items", "Those of them that the reply visibly drew on.", registry=REGISTRY
)
JUDGEMENTS = Counter(
    "hearth_judgements", "What was said of recalls and their items.", ["judgement"], registry=REGISTRY
)
FACTS = Counter(
    "hearth_facts",
    "What became of facts that were read: added, changed, taken back.",
    ["kind"],
    registry=REGISTRY,
)
EXTRACTION_CALLS = Counter(
    "hearth_extraction_calls",
    "Calls of the extraction model: used, bad, failed; and batches that rules read in its place.",
    ["tenant", "outcome"],
    registry=REGISTRY,
)
EXTRACTION_TOKENS = Counter(
    "hearth_extraction_tokens",
    "Tokens that memory itself has asked of models for, no part of any client's usage.",
    ["tenant", "purpose", "kind"],
    registry=REGISTRY,
)
EXTRACTION_COST = Counter(
    "hearth_extraction_cost_dollars",
    "What they cost, where that is known.",
    ["tenant", "purpose"],
    registry=REGISTRY,
)
EXTRACTION_REFUSED = Counter(
    "hearth_extraction_refused",
    "Claims of the model that no words of the user's bear out, by reason.",
    ["reason"],
    registry=REGISTRY,
)
OUTLIVED = Counter(
    "hearth_outlived",
    "Records forgotten because their time was over, by reason.",
    ["reason"],
    registry=REGISTRY,
)
ARCHIVED = Counter(
    "hearth_archived_payloads", "Payloads that went from the log to archives.", registry=REGISTRY
)
SEGMENTS = Counter(
    "hearth_segments", "What became of segments: promoted, evicted.", ["kind"], registry=REGISTRY
)
BLOCK_TOKENS = Counter("hearth_block_tokens", "Tokens put into prompts.", ["tenant"], registry=REGISTRY)
CAPTURES = Counter("hearth_captures", "Captured steps by outcome.", ["outcome"], registry=REGISTRY)
CAPTURE_SECONDS = Histogram(
    "hearth_capture_seconds", "Time until a capture was durable.", buckets=_MILLISECONDS, registry=REGISTRY
)
CAPTURE_SPOOLED = Counter("hearth_capture_spooled", "Captures that went to the spool.", registry=REGISTRY)
CAPTURE_LOST = Counter("hearth_capture_lost", "Captures that neither log nor spool took.", registry=REGISTRY)
CAPTURE_STALE = Counter(
    "hearth_capture_stale", "Captures refused because their user was erased meanwhile.", registry=REGISTRY
)
SHORT_TERM_REFILLED = Counter(
    "hearth_short_term_refilled",
    "Users whose latest pages short-term memory got back from the log: after long, or where it was emptied.",
    registry=REGISTRY,
)
FAILURES = Counter(
    "hearth_failures", "Failures that memory absorbed, by place.", ["place"], registry=REGISTRY
)
