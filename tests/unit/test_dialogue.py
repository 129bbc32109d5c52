"""Transcripts as exchanges, and the digests by which a session is found again."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hearth.gateway.wire import WIRES
from hearth.memory import dialogue
from hearth.memory.dialogue import (
    Dialogue,
    Pair,
    carry_over,
    exchange_id,
    exchange_ids,
    read,
    retry_key,
    tails,
)
from hearth.memory.types import Tails, ToolUse, Turn

quick = settings(max_examples=50)

SECRET = b"s" * 32
CALL = (ToolUse(name="ls"),)
SUMMARY = (
    "This session is being continued from a previous conversation that ran out of context. "
    "The summary below covers the earlier portion.\n\nSummary:\n1. Request: rename a table."
)


def turn(role: str, text: str = "", index: int = 0, **more: object) -> Turn:
    return Turn(role=role, text=text, index=index, **more)  # type: ignore[arg-type]


def transcript(*said: tuple[str, str] | Turn) -> list[Turn]:
    """Turns with their place in the list as index."""
    return [
        item if isinstance(item, Turn) else turn(item[0], item[1], index) for index, item in enumerate(said)
    ]


def pairs(*texts: tuple[str, str]) -> tuple[Pair, ...]:
    return tuple(Pair(user=user, reply=reply) for user, reply in texts)


def test_new_content_is_what_follows_the_last_reply() -> None:
    """The exchange is the last user text, what came before is history."""
    found = read(
        transcript(("system", "Be kind."), ("user", "Hi"), ("assistant", "Hello!"), ("user", "Who am I?"))
    )
    assert (found.user_text, found.user_index, found.first_step) == ("Who am I?", 3, True)
    assert [(pair.user, pair.reply) for pair in found.history] == [("Hi", "Hello!")]
    assert found.before == "Hello!"
    assert found.present == ("Be kind.", "Hi", "Hello!")


def test_user_messages_in_a_row_are_one_exchange() -> None:
    """Two messages before a reply are joined, and the block belongs to the second."""
    found = read(transcript(("user", "I live in Oslo."), ("user", "Where do I live?")))
    assert (found.user_text, found.user_index) == ("I live in Oslo.\nWhere do I live?", 1)


def test_a_prefill_at_the_end_does_not_count() -> None:
    """An assistant message at the very end is the beginning of the reply, not a reply."""
    found = read(transcript(("user", "Name a fruit"), ("assistant", "Sure: ")))
    assert (found.user_text, found.first_step, found.history) == ("Name a fruit", True, ())


def test_case_32_a_tool_loop_is_one_exchange() -> None:
    """Each step of a loop names the same user message and holds no tool output."""
    said = [turn("user", "What is in here?", 0)]
    for step in range(5):
        found = read(said)
        assert (found.user_text, found.user_index, found.first_step) == ("What is in here?", 0, step == 0)
        assert found.reply_so_far == "\n".join(f"Looking {n}" for n in range(step))
        said += [
            turn("assistant", f"Looking {step}", len(said), tools=CALL),
            turn("tool", index=len(said) + 1, tools=(ToolUse(name="ls", result_bytes=9),)),
        ]


def test_a_loop_that_ended_is_history_with_tools() -> None:
    """The pair of a tool loop joins its visible texts and says that tools were called."""
    found = read(
        transcript(
            ("user", "Fix it"),
            turn("assistant", "Looking.", 1, tools=CALL),
            turn("tool", index=2),
            ("assistant", "Fixed."),
            ("user", "Thanks"),
        )
    )
    assert found.history == (Pair(user="Fix it", reply="Looking.\nFixed.", index=0, tools=True),)


def test_scaffolding_is_no_turn_of_the_user() -> None:
    """A machine-written message opens no exchange, and its canned answer is no reply."""
    found = read(
        transcript(
            ("user", "Add a test"),
            ("assistant", "Added."),
            turn("user", "", 2, scaffolding=True),
            ("assistant", "Ok, any changes I propose will be to those files."),
            ("user", "Run it"),
        )
    )
    assert [(pair.user, pair.reply) for pair in found.history] == [("Add a test", "Added.")]


@pytest.mark.parametrize(
    "said", [[], [("system", "Be kind.")], [("user", "")], [("user", ""), ("assistant", "Hm")]]
)
def test_case_13_nothing_said_is_nothing_to_remember(said: list[tuple[str, str]]) -> None:
    """Without user text there is no content, no history and no tail."""
    found = read(transcript(*said))
    assert (found.user_text, found.history, bool(tails(found.looked_up, SECRET))) == ("", (), False)


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        (SUMMARY, False, True),
        (SUMMARY, True, True),
        (
            "Another language model started to solve this problem and produced a summary of its thinking.",
            False,
            True,
        ),
        (
            "I spoke to you previously about a number of things.\n" + "I asked you to add a parser. " * 400,
            False,
            True,
        ),
        (
            "I spoke to you previously about a number of things.\n" + "I asked you to add a parser. " * 400,
            True,
            False,
        ),
        ("I spoke to you previously about a number of things.", False, False),
        ("Here is a summary of my week: I slept.", False, False),
        ("What does 'This session is being continued from a previous conversation' mean?", False, False),
    ],
)
def test_carry_over_needs_a_mark(text: str, known: bool, expected: bool) -> None:
    """A compaction summary is told from a person's words by its opening and its size."""
    assert carry_over(text, known_session=known) is expected


def test_a_summary_before_the_users_words_is_left_out_of_them() -> None:
    """What was typed after a compaction is dialogue; the summary alone is carry-over."""
    both = read(transcript(("user", SUMMARY), ("user", "Now drop the table.")))
    alone = read(transcript(("user", SUMMARY)))
    assert (both.user_text, both.carry_over) == ("Now drop the table.", False)
    assert (alone.user_text, alone.carry_over) == (SUMMARY, True)


def test_a_session_goes_on_through_its_tail() -> None:
    """What a reply leaves behind is what the next request looks for."""
    first = read(transcript(("user", "Hi"), ("assistant", "Hello"), ("user", "I live in Oslo")))
    later = read(
        transcript(
            ("user", "Hi"),
            ("assistant", "Hello"),
            ("user", "I live in Oslo"),
            ("assistant", "Noted."),
            ("user", "Go"),
        )
    )
    assert tails(first.answered("Noted."), SECRET) == tails(later.looked_up, SECRET)


def test_each_step_of_a_loop_finds_the_step_before() -> None:
    """The first exchange of a session has no history, yet its second step finds the first."""
    said = [turn("user", "What is in here?", 0)]
    left = tails(read(said).answered("Looking."), SECRET)
    said += [turn("assistant", "Looking.", 1, tools=CALL), turn("tool", index=2)]
    step = read(said)
    assert tails(step.looked_up, SECRET) == left
    assert tails(step.history, SECRET) == Tails()
    closed = tails(step.answered("Two files."), SECRET)
    after = read([*said, turn("assistant", "Two files.", 3), turn("user", "Thanks", 4)])
    assert tails(after.looked_up, SECRET) == closed


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_a_sliding_window_keeps_its_session(kept: int) -> None:
    """A client that sends its last pairs only has the same tail as one that sends all."""
    whole = pairs(*((f"question number {n} of them", f"answer {n}") for n in range(6)))
    full, cut = tails(whole, SECRET), tails(whole[-kept:], SECRET)
    assert full.last_pair == cut.last_pair
    assert (full.last_two_pairs == cut.last_two_pairs) is (kept > 1)
    assert (full.user_texts == cut.user_texts) is (kept > 1)
    assert full.chain != cut.chain


def test_a_summary_at_the_head_keeps_the_tail() -> None:
    """Compaction replaces the head of a transcript; its tail is still found."""
    end = [("user", "Rename the orders table please"), ("assistant", "Done."), ("user", "Drop it")]
    before = read(transcript(("user", "Hello"), ("assistant", "Hi"), *end))
    after = read(transcript(("user", SUMMARY), ("assistant", "Understood."), *end))
    assert tails(before.looked_up, SECRET).last_pair == tails(after.looked_up, SECRET).last_pair


def test_short_user_texts_are_no_tail_alone() -> None:
    """The user texts reach back until they mean something, so two sessions that end in "yes" differ."""
    one = tails(pairs(("Shall we paint the kitchen?", "Yes?"), ("yes", "Good")), SECRET)
    two = tails(pairs(("Shall we sell the old car?", "Yes?"), ("yes", "Fine")), SECRET)
    assert one.user_texts != two.user_texts


def test_digests_need_the_secret() -> None:
    """Another tenant's digests of the same words are others."""
    said = pairs(("Hi", "Hello"))
    assert tails(said, SECRET) != tails(said, b"t" * 32)
    assert exchange_id("s", "", "Hi", SECRET) != exchange_id("s", "", "Hi", b"t" * 32)


def test_white_space_of_any_script_is_none() -> None:
    """Wide, hard and narrow spaces count as little as plain ones, and composed letters as decomposed ones."""
    one = tails(pairs(("Grüße\u3000aus Köln", "schön\u00a0da")), SECRET)
    two = tails(pairs(("Gru\u0308ße aus  Köln", "schön\n da")), SECRET)
    assert one == two


def test_fields_can_not_run_into_each_other() -> None:
    """Where one text ends and the next begins is part of the digest, whatever the texts hold."""
    assert tails(pairs(("ab", "c")), SECRET).last_pair != tails(pairs(("a", "bc")), SECRET).last_pair
    assert tails(pairs(("a\x1fb", "c")), SECRET).last_pair != tails(pairs(("a", "b\x1fc")), SECRET).last_pair


def test_exchange_ids_are_what_they_were_when_they_were_new() -> None:
    """The id of an exchange is the same later, when it is history, and at each step of its loop."""
    then, said = [], []
    for n in range(3):
        said.append(turn("user", f"question {n}", len(said)))
        found = read(said)
        then.append(
            (
                found.user_index,
                exchange_id("s", tails(found.history, SECRET).last_pair, found.user_text, SECRET),
            )
        )
        said.append(turn("assistant", f"answer {n}", len(said)))
    now = read([*said, turn("user", "next", len(said))])
    assert exchange_ids(now.history, "s", SECRET) == tuple(then)
    assert all(len(name) == 32 and int(name, 16) >= 0 for _, name in then)


def test_a_retry_has_the_key_of_its_first_attempt() -> None:
    """White space makes no other request; a user, a model, a word or a tool result does."""
    said = transcript(
        ("user", "Hi  there"), turn("tool", index=1, tools=(ToolUse(name="ls", result_bytes=3),))
    )
    key = retry_key("t/u", said, SECRET, about=("chat", "m"))
    again = transcript(("user", "Hi there "), said[1])
    other = transcript(
        ("user", "Hi there"), turn("tool", index=1, tools=(ToolUse(name="ls", result_bytes=4),))
    )
    assert key == retry_key("t/u", again, SECRET, about=("chat", "m"))
    different = [
        retry_key("t/v", said, SECRET, about=("chat", "m")),
        retry_key("t/u", said, SECRET, about=("chat", "n")),
        retry_key("t/u", said[:1], SECRET, about=("chat", "m")),
        retry_key("t/u", other, SECRET, about=("chat", "m")),
    ]
    assert key not in different


words = st.text(
    alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="<>:\x00"), min_size=1, max_size=40
)
said_words = words.filter(lambda text: bool(text.strip()) and not text.strip().lower().startswith("ok"))
exchanges = st.lists(st.tuples(said_words, said_words), min_size=1, max_size=5)


def _chat(said: Sequence[tuple[str, str]], reply: object) -> Dialogue:
    messages = []
    for user, answer in said:
        messages += [{"role": "user", "content": user}, reply(answer)]  # type: ignore[operator]
    body = {"model": "m", "messages": [*messages, {"role": "user", "content": "next"}]}
    return read(WIRES["chat"].read_request(body).turns)


def _assistant(content: object) -> dict[str, object]:
    return {"role": "assistant", "content": content}


REWRITES = {
    "trimmed": lambda text: _assistant(text.strip()),
    "padded": lambda text: _assistant(f"\n{text}  \n"),
    "lines doubled": lambda text: _assistant(text.replace("\n", "\n\n")),
    "reasoning kept in the text": lambda text: _assistant(f"<think>\nlet me see\n</think>\n\n{text}"),
    "reasoning half kept": lambda text: _assistant(f"let me see\n</think>\n\n{text}"),
    "details": lambda text: _assistant(
        f'<details type="reasoning" done="true">\n<summary>Thought</summary>\n> hm\n</details>\n{text}'
    ),
    "tool details": lambda text: _assistant(
        f'<details type="tool_calls" name="ls" arguments="{{}}">\n<summary>Ran</summary>\n</details>\n{text}'
    ),
    "librechat thinking": lambda text: _assistant(f":::thinking\nlet me see\n:::\n{text}"),
    "parts": lambda text: _assistant([{"type": "text", "text": text}]),
    "reasoning parts": lambda text: _assistant(
        [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": text}]
    ),
    "extra fields": lambda text: {
        **_assistant(text),
        "reasoning_content": "hm",
        "refusal": None,
        "tool_calls": [],
    },
}


@pytest.mark.parametrize("name", REWRITES)
@quick
@given(said=exchanges)
def test_rewritten_replies_have_the_same_tail(name: str, said: list[tuple[str, str]]) -> None:
    """However a client keeps a reply in its history, the tail is the one that the reply left."""
    plain, rewritten = _chat(said, _assistant), _chat(said, REWRITES[name])
    assert tails(plain.looked_up, SECRET) == tails(rewritten.looked_up, SECRET)


@quick
@given(said=exchanges, empty=st.sampled_from(["", None, [], [{"type": "text", "text": ""}]]))
def test_reserialised_tool_calls_have_the_same_tail(said: list[tuple[str, str]], empty: object) -> None:
    """Null and empty content are the same, and a call's JSON plays no part."""

    def loop(content: object, arguments: str) -> Dialogue:
        messages: list[dict[str, object]] = []
        for user, answer in said:
            call = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": arguments}}
            messages += [
                {"role": "user", "content": user},
                {**_assistant(content), "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "content": "a b"},
                _assistant(answer),
            ]
        body = {"messages": [*messages, {"role": "user", "content": "next"}]}
        return read(WIRES["chat"].read_request(body).turns)

    one, two = loop("", '{"a": 1, "b": 2}'), loop(empty, '{"b":2,"a":1}')
    assert tails(one.looked_up, SECRET) == tails(two.looked_up, SECRET)


def test_digests_stay_as_logs_hold_them() -> None:
    """A session of an earlier version is found again: the digests of given texts are these."""
    history = pairs(("My dog is called Zebedee.", "A fine name."), ("Où est-il ?", ""))
    assert tails(history, b"k" * 32) == Tails(
        last_pair="f1aaf0bdc5e91d576bc1c0da66d571f424226808fb2aee85678bd439aae5735f",
        last_two_pairs="0a519a0f0863dde91fad7bb766ce8e10ab60b0bc4d205ac1def50c1ad4e14d16",
        user_texts="fc1910fd593d6442d78e7bc7a97e8d3b4285be2d64155acc4ae35f71610e800d",
        chain="8051947d0bbb8af9b61150a6dda83346c673d95d6e950e6931b16aa02fa0d71e",
    )
    ids = [found for _, found in exchange_ids(history, "s1", b"k" * 32)]
    assert ids == ["315b7c1da18cb7aa2119deadf80ccee0", "b4675a446ef9ac5fb5c767f18f3140a8"]
    key = retry_key("acme/alice", [turn("user", "hi")], b"k" * 32, about=("chat", "gpt"))
    assert key == "5aa25a1b976d54715fbbb92c6d82b5671a4934d2937536c75663853e83ae2023"


def test_a_long_history_is_made_ready_for_digests_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many digests a request needs, each text of its history is looked at once."""
    seen: list[str] = []
    ready = dialogue._essence
    monkeypatch.setattr(dialogue, "_essence", lambda text: seen.append(text) or ready(text))
    said = [("user" if index % 2 == 0 else "assistant", f"text {index}") for index in range(201)]
    found = read(transcript(*said))
    for _ in range(3):
        tails(found.history, SECRET)
        tails(found.answered("ok"), SECRET)
        exchange_ids(found.history, "s", SECRET)
    assert sorted(text for text in seen if text in {text for _, text in said[:-1]}) == sorted(
        text for _, text in said[:-1]
    )


@quick
@given(st.text(max_size=60))
def test_any_text_has_digests(text: str) -> None:
    """Lone surrogates and control characters are digested like any text."""
    found = tails([Pair(user=text, reply=text)], SECRET)
    assert len(found.last_pair) == 64
    assert len(exchange_id(text, text, text, SECRET)) == 32


def test_tokens_are_estimated_by_script() -> None:
    """Four Latin letters are a token, three Chinese characters are two."""
    assert dialogue.estimated_tokens("abcd" * 10) == 10
    assert dialogue.estimated_tokens("你" * 30) == 20
