"""What people and models really said: text without our block, client scaffolding or visible reasoning."""

from __future__ import annotations

import re

from hearth.memory.recall.block import detach

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE = re.compile("[\ud800-\udfff\x00]")


def _joined(match: re.Match[str]) -> str:
    return match.group().encode("utf-16", "surrogatepass").decode("utf-16")


def well_formed(text: str) -> str:
    """`text` as valid Unicode that any store takes: split pairs joined, lone surrogates and NUL as U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = _PAIR.sub(_joined, text)
    else:
        if "\x00" not in text:
            return text
    return _LONE.sub("\ufffd", text)


_DROPPED_TAGS = (
    "system-reminder|system_reminder|environment_details|environment_context|user_instructions|user-prompt-submit-hook"
    "|local-command-stdout|local-command-stderr|local-command-caveat|command-name|command-message|bash-stdout|bash-stderr"
    "|post-tool-use-hook|task-notification|ide_selection|ide_opened_file|ide_diagnostics|new-diagnostics|turn_aborted"
    "|open_and_recently_viewed_files|manually_attached_skills|system_notification|subagent_notification"
)
"""Tags that only client programs write; words such as `rules` or `context` are not: people use them too."""
_UNWRAPPED_TAGS = "user_message|command-args|bash-input|task|feedback"
_QUERY_TAGS = ("user_query", "userRequest")
"""Where a message has one of these (Cursor, Copilot, Open WebUI), the rest is the program's."""

_DROPPED = re.compile(rf"<({_DROPPED_TAGS})(?:\s[^<>]*)?>")
_UNWRAPPED = re.compile(rf"</?(?:{_UNWRAPPED_TAGS})>")
_AGENTS_FILE = re.compile(
    r"\A\s*# AGENTS\.md instructions for [^\n]*\n+<INSTRUCTIONS>.*?</INSTRUCTIONS>\s*", re.DOTALL
)
_RAG_TASK = re.compile(r"\A\s*### Task:\s+Respond to the user query using the provided context\b")
_RAG_FILES = re.compile(r"\A\s*Attached document\(s\):\s*(?:```md.*?```\s*)+", re.DOTALL)
_AIDER = re.compile(
    r"\A(?:I have \*added these files to the chat\*|Here are summaries of some files present in my git repo"
    r"|Here are some READ ONLY files|I am not sharing any files that you can edit yet"
    r"|I committed the changes with git hash [0-9a-f]+ & commit msg: |I updated the files\.\Z"
    r"|I made those changes to the files\.\Z)"
)
"""What aider says in the user's name: files that it shows, edits that it has carried out."""
_AIDER_RULES = re.compile(
    r"\n\n\n?(?:# \*SEARCH/REPLACE block\* Rules:\n\nEvery |# File editing rules:\n\nReturn edits similar to "
    r"|# V4A Diff Format Rules:\n\nYour entire response "
    r"|To suggest changes to a file you MUST return the entire content of the updated file\.\n)"
)
"""How the rules begin that aider puts behind the user's words, by edit format."""


def _without_sections(text: str, opening: re.Pattern[str], *, open_end: bool = False) -> str:
    """`text` without the sections that `opening` starts, its group 1 naming the tag that ends them.

    With `open_end` a section that nothing ends goes to the text's end. Linear, however often a tag opens.
    """
    kept, position, endless = [], 0, set()
    for match in opening.finditer(text):
        tag = match[1]
        if match.start() < position or tag in endless:
            continue
        end = text.find(f"</{tag}>", match.end())
        if end < 0 and not open_end:
            endless.add(tag)
            continue
        kept.append(text[position : match.start()])
        position = len(text) if end < 0 else end + len(tag) + 3
    return "".join([*kept, text[position:]])


def _without_rag(text: str) -> str:
    """The user's own words out of the prompt in which Open WebUI or LibreChat wraps retrieved text."""
    if _RAG_TASK.match(text):
        _, closed, rest = text.rpartition("</context>")
        text = rest if closed else text
    return _RAG_FILES.sub("", text)


def _query_alone(text: str) -> str:
    """What stands in the last query tag; `text` itself where there is none."""
    for tag in _QUERY_TAGS:
        _, opened, rest = text.rpartition(f"<{tag}>")
        query, closed, _ = rest.partition(f"</{tag}>")
        if opened and closed:
            return query
    return text


def user_text(text: str) -> str:
    """What the user typed: without our block and without what clients wrap around it. May be empty."""
    text = well_formed(text)
    if text.lstrip()[:3] == "###" or text.startswith("Attached"):
        text = _without_rag(text)
    if _AIDER.match(text):
        return ""
    if (rules := _AIDER_RULES.search(text)) is not None:
        text = text[: rules.start()]
    if "<" not in text:
        return text.strip()
    text = _query_alone(_AGENTS_FILE.sub("", detach(text)))
    text = _without_sections(text, _DROPPED)
    return _UNWRAPPED.sub("", text).strip()


_REASONING = re.compile(r"(?:\A|(?<=\n))[^\S\n]*<(think|thinking|thought|reasoning)>")
_DETAILS = re.compile(r"<(details)\s[^<>]*\btype=\"?(?:reasoning|tool_calls|code_interpreter)\b[^<>]*>")
_COLONS = re.compile(r"(?:\A|(?<=\n)):::thinking\b.*?(?:\n:::|\Z)\s*", re.DOTALL)


def _without_half_reasoning(text: str) -> str:
    """Some templates put the opening tag into the prompt, so that the reply holds the closing one alone."""
    head, closed, rest = text.partition("</think>")
    return rest if closed and "<think>" not in head else text


def assistant_text(text: str) -> str:
    """The visible words of a reply: without reasoning and tool calls that are written into its text."""
    text = well_formed(text)
    if "<" in text:
        text = _without_sections(_without_half_reasoning(text), _REASONING, open_end=True)
        text = _without_sections(text, _DETAILS, open_end=True)
    if ":::thinking" in text:
        text = _COLONS.sub("", text)
    return text.strip()
