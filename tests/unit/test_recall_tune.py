"""Weights learnt from recalls whose useful items are known."""

from __future__ import annotations

import pytest

from hearth.memory.events.kinds import Event, RecallJudged
from hearth.memory.recall.lessons import lessons_of, signals_in
from hearth.memory.recall.tune import NEEDED, TooFew, Tuned, tune
from hearth.memory.types import Judgement, Ranked, Ranking
from tests.events import event, step
from tests.told import FIRST, IN_FORCE, ITEMS, LAST, SHIFTED, USED, drawn

NAMES = tuple(IN_FORCE)
RANKING = Ranking(
    signals=("text", "date"),
    items=(
        Ranked(id="a", shown=True, values=(0.9, 0.1)),
        Ranked(id="b", shown=True, values=(0.5, 0.0)),
        Ranked(id="c", shown=False, values=(0.4, 0.7)),
    ),
)


def learnt(events: list[Event]) -> Tuned:
    """What is learnt from them beside the weights in force."""
    return tune(lessons_of(events, NAMES), IN_FORCE)


def judged(whole: Judgement | None = None, **items: Judgement) -> Event:
    """Feedback on the recall `t`."""
    return event(RecallJudged(trace="t", judgement=whole, items=items, ranking=RANKING))


def test_a_known_better_weighting_is_found() -> None:
    """The signal that tells gains weight, the other loses it, and more of what was held back is right."""
    found = learnt(list(drawn(300, SHIFTED, noise=0.1)))
    assert found.better
    assert found.new[LAST] > 3 * IN_FORCE[LAST]
    assert found.new[FIRST] < 0.7 * IN_FORCE[FIRST]
    assert found.right_after > found.right_before + 0.05
    assert found.gain_low > 0.05
    assert sum(map(abs, found.new.values())) == pytest.approx(sum(map(abs, IN_FORCE.values())), abs=0.01)
    assert all(found.new[name] * weight > 0 for name, weight in IN_FORCE.items())
    assert (found.recalls, found.judged) == (300, 0)
    assert 60 < found.held_back < 140


@pytest.mark.parametrize("noise", [0.0, 1.0, 20.0], ids=["perfect", "noisy", "by chance"])
def test_where_there_is_nothing_to_gain_nothing_is_proposed(noise: float) -> None:
    """Whether the weights in force are right already or no weights could be."""
    found = learnt(list(drawn(300, IN_FORCE, noise=noise)))
    assert not found.better
    assert found.new == found.old == IN_FORCE


def test_learning_is_deterministic() -> None:
    """The same log gives the same weights."""
    assert learnt(list(drawn(100, SHIFTED, noise=0.1))) == learnt(list(drawn(100, SHIFTED, noise=0.1)))


def test_too_few_recalls_are_refused_with_the_number_that_is_needed() -> None:
    """One below it is too few, and says so."""
    with pytest.raises(TooFew, match=f"49 recalls .* at least {NEEDED} are needed"):
        learnt(list(drawn(49, SHIFTED, noise=0.1)))
    assert learnt(list(drawn(50, SHIFTED, noise=0.1))).recalls == 50


def test_each_used_item_should_have_ranked_above_each_unused() -> None:
    """All such pairs of a recall are a lesson, and together count as much as one pair."""
    (lesson,) = lessons_of(drawn(1, IN_FORCE, noise=0.0), NAMES)
    assert lesson.differences.shape == (USED * (ITEMS - USED), len(NAMES))
    assert (lesson.differences @ list(IN_FORCE.values()) > 0).all()
    assert lesson.weights.sum() == pytest.approx(0.5 * 0.25)
    assert (lesson.key, lesson.judged) == ("x0", False)


def test_judgements_of_items_are_pairs_and_the_last_word_counts() -> None:
    """A useful item above a wrong one, shown or not; signals of another name are left out."""
    (lesson,) = lessons_of([judged(a="useful", c="wrong")], ("text", "new"))
    assert lesson.differences.tolist() == [[0.5, 0.0]]
    assert lesson.judged
    (turned,) = lessons_of([judged(a="useful", c="wrong"), judged(a="wrong", c="useful")], ("text", "date"))
    assert turned.differences.round(3).tolist() == [[-0.5, 0.6]]
    assert lessons_of([judged(a="useful", c="useful")], NAMES) == []


def test_a_judgement_of_the_whole_sets_what_was_shown_against_the_rest() -> None:
    """Both ways, and counts a tenth."""
    (good,) = lessons_of([judged("useful")], ("text",))
    (bad,) = lessons_of([judged("wrong")], ("text",))
    assert good.differences.round(3).tolist() == [[0.5], [0.1]]
    assert bad.differences.round(3).tolist() == [[-0.5], [-0.1]]
    assert good.weights.sum() == pytest.approx(0.1)


def test_only_what_tells_something_is_learnt_from() -> None:
    """Other events, and a recall without candidates, give neither lessons nor signals."""
    empty = event(RecallJudged(trace="t", judgement="useful"))
    assert lessons_of([step("x1"), empty], NAMES) == []
    assert signals_in([step("x1"), empty]) == frozenset()
    assert signals_in([judged("wrong")]) == {"text", "date"}
