"""How recall weighs, cuts and fills: one frozen record of numbers, with named presets."""

from __future__ import annotations

from typing import Final

import msgspec


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of each signal in the rank score of a side: what was said, or replied, in one exchange.

    Fitted to LoCoMo's development half (benchmarks/fit_rank.py, docs/benchmarks.md): the logarithm of how
    much likelier a signal of 1 makes it that this side is asked for. Signals are scaled to about 0 to 1.
    """

    text: float = 0.8
    """The page's own cosine, among those of all candidates."""
    context: float = 0.5
    """The cosine of the page with the one before it, among all candidates'."""
    standout: float = 1.65
    """The same in fifths of a standard deviation over the candidates' mean."""
    lexical: float = 1.25
    """The side's words, as a share of the best side's."""
    page_lexical: float = 1.1
    """The words of the whole page, as a share of the best page's."""
    related: float = 2.55
    """How far the side's words are the question's content words, or related to them."""
    previous_context: float = 0.5
    next_context: float = 2.45
    previous_lexical: float = 1.35
    """Of the side that was said before, and after, where that is a candidate's too. What follows a side that
    shares the question's words is often its answer; that such a side follows tells nothing."""
    speaker: float = 1.1
    """The question names one side of the dialogue, or is about the user's self, and this side is theirs."""
    date: float = 3.3
    """Nearness of the candidate's moment to the time that the question asks about."""
    order: float = 2.0
    """The candidate is the first, or the latest, that speaks of what is asked, where that is wanted."""
    asks: float = -0.85
    """The side ends with a question."""
    number: float = 0.9
    """The side holds a number."""
    length: float = 0.2
    """Logarithm of the side's words."""
    names: float = 0.9
    """The side names somebody or something."""
    opens: float = 0.65
    """Nothing was said before it, as far as is known."""
    recency: float = 0.15
    """Halves every `recency_days`. Not fitted: a dialogue that has ended tells nothing of it."""
    importance: float = 0.25
    """Of a memory's importance; pages count as 0.5. Not fitted: there are no memories in it."""
    recency_days: float = 30.0


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of the budget that each group may fill before what others leave unused is handed out."""

    profile: float = 0.10
    agent: float = 0.05
    facts: float = 0.30
    conversation: float = 0.40
    knowledge: float = 0.10
    system: float = 0.05


class RecallPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about recall that an operator may set."""

    weights: Weights = Weights()
    shares: Shares = Shares()
    deadline_seconds: float = 0.150
    """Time from the request's start after which recall goes on with what has arrived."""
    budget_tokens: int = 1024
    """Of a block at most."""
    window_share: float = 0.10
    """Part of the model's window that a block may take; the smaller of both counts."""
    floor: float | None = None
    """Relevance (0..1) that the best candidate must reach, or nothing is recalled. None: one half, at which
    the embedder's model was fitted to part questions about the user from all others."""
    item_floor: float = 0.05
    """Relevance that every further item must reach."""
    item_share: float = 0.05
    """Of the best candidate's odds, `relevance / (1 - relevance)`: what every further item must reach too;
    less among many candidates."""
    limit: int = 100
    """Candidates asked of the store for each kind of score."""
    max_items: int = 120
    """Items of a block at most, whatever the budget: one or both sides of an exchange are one."""
    item_tokens: int = 240
    """Tokens of one item at most; longer ones end at a sentence with an ellipsis."""
    embed_characters: int = 600
    """Characters of the question that are embedded at most."""
    lexical_characters: int = 1500
    """Characters of the question whose words are looked up at most."""
    short_words: int = 3
    """A question of no more words than this is read together with the turn before it."""

    def tokens_for(self, window: int | None) -> int:
        """The budget for a model whose context window is `window` tokens (None or 0: unknown)."""
        return min(self.budget_tokens, int(window * self.window_share)) if window else self.budget_tokens


PRESETS: Final[dict[str, RecallPolicy]] = {
    "balanced": RecallPolicy(),
    "small": RecallPolicy(budget_tokens=512, max_items=60),
    "large": RecallPolicy(budget_tokens=2048, max_items=240, limit=150),
    "strict": RecallPolicy(floor=0.8, item_floor=0.4),
}
"""By name: `balanced` (default), `small` and `large` budgets, `strict`: nothing rather than a weak memory."""
