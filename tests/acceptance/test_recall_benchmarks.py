"""The benchmarks of recall, on a few lines made up for it: what they ask, and what they count."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ANN_AND_BEN = (
    ("Ann", "Ben"),
    (
        ("Ann", "My parrot Pico has learned to whistle the national anthem."),
        ("Ben", "That's wonderful! I am building a canoe out of cedar wood."),
        ("Ann", "I start as a glass blower in Murano on the second of May."),
        ("Ben", "Then we must celebrate, I'll bring my grandmother's plum cake."),
    ),
)
CARA_AND_DAN = (
    ("Cara", "Dan"),
    (
        ("Cara", "I adopted a lame donkey from the shelter last week."),
        ("Dan", "My trombone was stolen at the railway station in Ghent."),
    ),
)
QUESTIONS = {
    "Ann": (("What has Ann's parrot learned?", "D1:1"), ("What is Ben building?", "D1:2")),
    "Cara": (("Which animal did Cara adopt?", "D1:1"), ("Where was Dan's trombone stolen?", "D1:2")),
}


def dialogue(people: tuple[str, str], turns: tuple[tuple[str, str], ...]) -> dict[str, object]:
    """One session of LoCoMo's form, with its questions and one that has no answer."""
    told = [{"speaker": who, "dia_id": f"D1:{i}", "text": text} for i, (who, text) in enumerate(turns, 1)]
    asked = [{"question": q, "evidence": [e], "category": 4} for q, e in QUESTIONS[people[0]]]
    return {
        "sample_id": "-".join(people),
        "conversation": {
            "speaker_a": people[0],
            "speaker_b": people[1],
            "session_1": told,
            "session_1_date_time": "1:56 pm on 8 May, 2023",
        },
        "qa": [*asked, {"question": f"What did {people[1]} paint?", "evidence": ["D1:1"], "category": 5}],
    }


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Path:
    path = tmp_path / "dialogues.json"
    path.write_text(json.dumps([dialogue(*ANN_AND_BEN), dialogue(*CARA_AND_DAN)]), encoding="utf-8")
    return path


def printed(name: str, *arguments: str | int | Path) -> str:
    """What the benchmark prints."""
    command = [sys.executable, str(BENCHMARKS / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def rows(text: str) -> dict[str, list[str]]:
    """The tables' rows by their first cell."""
    cells = [
        [cell.strip() for cell in line.strip("| ").split(" | ")] for line in text.splitlines() if "|" in line
    ]
    return {one[0]: one[1:] for one in cells}


def test_recall_is_measured(data: Path) -> None:
    """Every question is asked at every budget, and a block big enough holds everything."""
    text = printed("recall.py", data, "--no-floor")
    assert "use-m3, 4 questions" in text
    assert re.findall(r"(\d+) tokens: .*'every kind': '100.0'", text) == ["512", "1024", "2048"]


def test_what_a_memory_cannot_answer_is_measured(data: Path, tmp_path: Path) -> None:
    """Each kind is asked as often as it should be, and the same comes out with vectors of an earlier run."""
    vectors = tmp_path / "vectors.npz"
    text = printed("abstain.py", data, "--requests", 5, "--vectors", vectors)
    found = rows(text)
    assert [found[kind][0] for kind in ("true", "adversarial", "hard", "foreign")] == ["4", "2", "4", "4"]
    assert found["true"][2] == "0.0"
    assert found["everyday"][0] == found["everyday, held out"][0] == "10"
    assert float(found["everyday"][3]) > 0.9
    assert {"Ann-Ben", "Cara-Dan", "everyone's"} <= found.keys()
    made = vectors.stat().st_mtime_ns
    assert printed("abstain.py", data, "--requests", 5, "--vectors", vectors) == text
    assert vectors.stat().st_mtime_ns == made


def test_languages_are_measured(tmp_path: Path) -> None:
    """Questions are counted by kind and by both languages, beside plain dense search."""
    asked = [
        {"kind": "same", "language": "de", "text": "Wie heißt mein Papagei?"},
        {"kind": "cross", "language": "en", "text": "What is the name of my parrot?"},
    ]
    fact = {"language": "de", "said": "Mein Papagei heißt Pico.", "questions": asked}
    other = {"language": "de", "said": "Der Zug nach Gent fährt um neun."}
    data = {"replies": {"de": ["Gut zu wissen!"]}, "facts": [fact], "others": [other]}
    path = tmp_path / "said.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    found = rows(printed("languages.py", "--data", path))
    assert found["same"][:3] == ["1", "100", "100"]
    assert found["cross"][0] == found["en"][0] == "1"
    assert found["all"][0] == "2"


def test_the_kept_languages_are_whole() -> None:
    """Every language has as many others' pages, and each kind of pair its questions."""
    data = json.loads((BENCHMARKS / "languages.json").read_text(encoding="utf-8"))
    others = [one["language"] for one in data["others"]]
    assert len(others) == 200
    assert {others.count(language) for language in data["replies"]} == {20}
    kinds = {asked["kind"] for fact in data["facts"] for asked in fact["questions"]}
    assert kinds == {"same", "cross", "mixed", "script", "name", "name, no spaces"}
    said = [one["said"] for part in ("facts", "others") for one in data[part]]
    assert len(said) == len(set(said))
