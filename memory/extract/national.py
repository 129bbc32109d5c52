"""Numbers that states give to people, each by its form and, where it has one, its check digits.

Where the form alone says little (nine digits are many things), a word before it must say what it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Final, NamedTuple

from hearth.memory.extract.digits import LETTERS, Windows, matches

_NEAR: Final = 40
"""Characters before a number in which a word may say what it is."""


class National(NamedTuple):
    """One state's number."""

    form: re.Pattern[str]
    check: str = ""
    """Module of `stdnum` that knows the number; empty: the form is all there is."""
    cue: re.Pattern[str] | None = None
    """A word that must stand before it."""

    def places(self, text: str, within: Windows) -> Iterator[tuple[int, int]]:
        """Where such numbers stand, in those windows of `text`."""
        if self.cue is not None and self.cue.search(text) is None:
            return
        for match in matches(self.form, text, within):
            if self._said(match) and self._valid(match.group()):
                yield match.span()

    def _said(self, match: re.Match[str]) -> bool:
        if self.cue is None:
            return True
        return self.cue.search(match.string, max(0, match.start() - _NEAR), match.start()) is not None

    def _valid(self, number: str) -> bool:
        return not self.check or bool(import_module(f"stdnum.{self.check}").is_valid(number.replace(".", "")))


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![{LETTERS}.+/-])(?:{pattern})(?![{LETTERS}/-])(?!\.\w)", re.IGNORECASE)


def _cue(*words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(words)})(?![^\W_])", re.IGNORECASE)


NATIONAL: Final = (
    National(_form(r"\d{3}-\d{2}-\d{4}"), "us.ssn"),
    National(_form(r"\d{3} ?\d{2} ?\d{4}"), "us.ssn", _cue("ssn", "social security(?: number| no)?")),
    National(_form(r"756[. ]?\d{4}[. ]?\d{4}[. ]?\d{2}"), "ch.ssn"),
    National(_form(r"\d{2}[.]?\d{3}[.]?\d{3}[ -]?[A-HJ-NP-TV-Z]"), "es.dni"),
    National(_form(r"[XYZ][ -]?\d{7}[ -]?[A-HJ-NP-TV-Z]"), "es.nie"),
    National(_form(r"[12] ?\d{2} ?(?:0[1-9]|1[0-2]|20) ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}"), "fr.nir"),
    National(_form(r"[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]"), "it.codicefiscale"),
    National(
        _form(r"\d{2} ?\d{3} ?\d{3} ?\d{3}"),
        "de.idnr",
        _cue(
            "steuer-?id(?:nr)?",
            "idnr",
            "steuerliche identifikationsnummer",
            "identifikationsnummer",
            "tin",
            "tax id",
        ),
    ),
    National(_form(r"(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z](?: ?\d{2}){3} ?[A-D]")),
    National(_form(r"\d{3} ?\d{3} ?\d{4}"), "gb.nhs", _cue("nhs(?: number| no)?")),
    National(_form(r"\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}"), "be.nn"),
    National(_form(r"\d{4}[. ]?\d{2}[. ]?\d{3}"), "nl.bsn", _cue("bsn", "burgerservicenummer", "sofinummer")),
    National(_form(r"\d{11}"), "pl.pesel", _cue("pesel")),
    National(_form(r"(?:19|20)?\d{6}[-+]\d{4}"), "se.personnummer"),
    National(_form(r"\d{6}[-+A-FYXWVU]\d{3}[0-9A-FHJ-NPR-Y]"), "fi.hetu"),
    National(_form(r"\d{6}-?\d{4}"), "dk.cpr", _cue("cpr(?:-?nummer|-?nr)?")),
    National(_form(r"\d{6} ?\d{5}"), "no.fodselsnummer", _cue("fødselsnummer", "personnummer", "fnr")),
    National(_form(r"\d{6}/\d{3,4}"), "cz.rc", _cue("rodné číslo", "rodne cislo", "rč")),
    National(_form(r"\d{3}\.\d{3}\.\d{3}-\d{2}"), "br.cpf"),
    National(_form(r"\d{11}"), "br.cpf", _cue("cpf")),
    National(_form(r"[A-Z]{4}\d{6}[HM][A-Z]{5}[0-9A-Z]\d"), "mx.curp"),
    National(_form(r"\d{4} ?\d{4} ?\d{4}"), "in_.aadhaar", _cue("aadhaar", "aadhar", "uid")),
    National(_form(r"\d{17}[\dX]"), "cn.ric"),
    National(_form(r"\d{6}-\d{7}"), "kr.rrn"),
    National(_form(r"\d{11}"), "tr.tckimlik", _cue("t\\.?c\\.?(?: kimlik)?", "kimlik(?: no)?")),
    National(
        _form(r"\d{3}[ -]?\d{3}[ -]?\d{3}"), "ca.sin", _cue("sin", "social insurance(?: number)?", "nas")
    ),
    National(_form(r"\d{3} ?\d{3} ?\d{3}"), "au.tfn", _cue("tfn", "tax file number")),
)
"""By states; the forms of some are others' too."""
