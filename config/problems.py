"""What is wrong with a configuration, as records that a person can act on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Level = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong. An error stops the start; a warning is printed and the start goes on."""

    level: Level
    where: str
    """Key path and, where known, file and line: `hearth.recall.deadline_ms (litellm_config.yaml:12)`."""
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.level}: {self.where}: {self.message} -> {self.remedy}"


class SettingsError(Exception):
    """The configuration can't be used; carries every problem found, not just the first, errors first."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.level))
        super().__init__("\n".join(str(problem) for problem in self.problems))
