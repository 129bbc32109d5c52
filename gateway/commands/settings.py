"""The configuration as commands load it, and its problems as they print them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.text import Text

from hearth.config.check import check, check_servers
from hearth.config.load import QUICKSTART, load_settings
from hearth.config.problems import Problem, SettingsError
from hearth.config.settings import Settings
from hearth.gateway.commands.output import MISUSED, err, one_line


def load(path: Path | None) -> Settings:
    """Settings of the file, or of the quickstart. Prints every problem and ends with 2 if there is one."""
    try:
        return load_settings(path or QUICKSTART, os.environ)
    except SettingsError as error:
        show_problems(error.problems)
        raise typer.Exit(MISUSED) from error


def load_to_open(path: Path | None) -> Settings:
    """The same, for a command that opens the stores itself: says what is wrong with how they are reached."""
    settings = load(path)
    show_problems(check_servers(settings))
    return settings


def problems_of(path: Path) -> list[Problem]:
    """Every problem of a configuration file, whether it stops the reading or is found afterwards."""
    try:
        return check(load_settings(path, os.environ))
    except SettingsError as error:
        return list(error.problems)


def refuse_problems(settings: Settings, *, host: str, workers: int = 1) -> None:
    """Print what is wrong with the settings, and end with 2 if they can't be served."""
    problems = check(settings, host=host, workers=workers)
    show_problems(problems)
    if has_errors(problems):
        raise typer.Exit(MISUSED)


def has_errors(problems: Sequence[Problem]) -> bool:
    """True if one of them stops the start."""
    return any(problem.level == "error" for problem in problems)


def show_problems(problems: Sequence[Problem]) -> None:
    """Print problems on stderr, one a line, whole however narrow the terminal is."""
    for problem in problems:
        level = Text(f"{problem.level}: ", style="bold red" if problem.level == "error" else "bold yellow")
        said = f"{problem.where}: {problem.message} -> {problem.remedy}"
        err.print(level + Text(one_line(said)), soft_wrap=True)
