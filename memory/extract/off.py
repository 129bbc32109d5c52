"""The extractor of an installation that wants no facts read."""

from __future__ import annotations

from hearth.memory.types import CandidateFact, Page


class NoExtractor:
    """Reads nothing."""

    name = "off"

    def extract(self, page: Page) -> list[CandidateFact]:
        """See `Extractor.extract`."""
        return []
