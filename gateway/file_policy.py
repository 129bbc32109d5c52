"""What the configuration file says of the policy, read again when the file changes while the process runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hearth.config.check import check
from hearth.config.problems import Problem, SettingsError
from hearth.config.settings import Settings
from hearth.gateway.life import settled_by
from hearth.gateway.model import extraction_model
from hearth.memory.policies import FileAccount
from hearth.memory.tiers.layers import Setting

logger = logging.getLogger(__name__)

_SECTION: Final = "life"
_OF_ALL: Final = frozenset({"hearth.recall.budget_tokens", "hearth.capture.redact"})
_NARROWER: Final = frozenset({"facts", "budget_tokens", "daily_memory_tokens", "redact"})
"""What of the settings is policy: sections, values of the installation's, and of tenants, agents and keys."""


class FilePolicy:
    """Settings of tenants, agents and keys by the file as it stands; of a broken one as it stood before."""

    def __init__(self, settings: Settings) -> None:
        self._path, self._again = settings.path, settings.again
        self._seen = _mark(self._path)
        self._begun = dict(_elsewhere(settings))
        self._borne = frozenset(_errors(settings))
        """What would stop a start of another command than this one: a worker needs no keys."""
        self._settled = settled_by(settings.hearth)
        self._account = FileAccount()

    def __call__(self, tenant: str, agent: str, key: str) -> Sequence[Setting]:
        """What the file says for them."""
        return self._settled(tenant, agent, key)

    def look(self) -> bool:
        """Read the file if it has changed; True where its policy counts anew. Raises nothing for the file."""
        mark = _mark(self._path)
        if self._again is None or mark == self._seen:
            return False
        self._seen = mark
        try:
            settings = self._again()
            self._refuse_new_errors(settings)
        except SettingsError as error:
            places = ", ".join(problem.where for problem in error.problems if problem.level == "error")
            # Without the values: one of them may be a secret in a wrong place.
            logger.warning(
                "the changed configuration can't be used, and the one before counts: %s;"
                " `hearth check-config` tells more",
                places,
            )
            self._account = FileAccount(unusable=True, restart=self._account.restart)
            return False
        now = dict(_elsewhere(settings))
        restart = sorted(name for name in {*now, *self._begun} if now.get(name) != self._begun.get(name))
        logger.info("the configuration has changed, and what it says of the policy counts")
        if restart:
            logger.warning("changed settings that count after a restart: %s", ", ".join(restart))
        self._settled, self._account = settled_by(settings.hearth), FileAccount(restart=len(restart))
        return True

    def _refuse_new_errors(self, settings: Settings) -> None:
        """An emptied file can be read, and would take every value back. Raises SettingsError."""
        found = _errors(settings)
        if new := [found[place] for place in found if place not in self._borne]:
            raise SettingsError(new)

    def account(self) -> FileAccount:
        """How the file was found at the last look."""
        return self._account


def _errors(settings: Settings) -> dict[str, Problem]:
    """What would stop a start with these settings, by its place."""
    return {problem.where: problem for problem in check(settings) if problem.level == "error"}


def _mark(path: Path | None) -> tuple[int, int, int] | None:
    """Differs where the file does; a ConfigMap's changes by another file in its place."""
    try:
        found = path.stat() if path is not None else None
    except OSError:
        return None
    return found and (found.st_mtime_ns, found.st_size, found.st_ino)


def _elsewhere(settings: Settings) -> Iterator[tuple[str, Any]]:
    """Each setting that is not of the policy, by its name in the file; keys by theirs."""
    whole = settings.hearth.model_dump()
    whole["keys"] = {one["name"]: one for one in whole["keys"]}
    yield from _leaves(whole, "hearth")
    yield "hearth.life.extraction.model", extraction_model(settings) is not None
    yield from settings.litellm.items()


def _leaves(part: Mapping[str, Any], above: str) -> Iterator[tuple[str, Any]]:
    for name, value in part.items():
        path = f"{above}.{name}"
        narrower = above.startswith(("hearth.tenants.", "hearth.keys."))
        if name == _SECTION or path in _OF_ALL or (narrower and name in _NARROWER):
            continue
        if isinstance(value, Mapping):
            yield from _leaves(value, path)
        else:
            yield path, value
