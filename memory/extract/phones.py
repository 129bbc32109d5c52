"""Phone numbers in text: international ones by their form, national ones where a word says what they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from hearth.memory.extract.digits import LETTERS, matches, windows

_GAP: Final = "[ \u00a0\u202f./()-]"
_INTERNATIONAL: Final = re.compile(
    rf"(?<![{LETTERS}+/=.-])(?:\+|00(?=[1-9])|\(\+(?=\d{{1,3}}\)))\(?\d(?:{_GAP}{{0,3}}\d){{6,16}}(?![{LETTERS}+])(?!\.\d)"
)
_NATIONAL: Final = re.compile(
    rf"(?<![{LETTERS}+/=.,-])\(?\d(?:{_GAP}{{0,3}}\d){{5,14}}(?![{LETTERS}+:%€$£])(?![.,]\d)"
)
_AMERICAN: Final = re.compile(
    rf"(?<![{LETTERS}.-])(?:\(\d{{3}}\) ?\d{{3}}[-. ]\d{{4}}|\d{{3}}-\d{{3}}-\d{{4}})(?![{LETTERS}-])(?!\.\d)"
)
"""Forms that nothing else has."""
_CUE: Final = re.compile(
    r"(?:\b(?:tele)?(?:phone|fon|foon|phon)(?:nummer|number|s)?\b|\btel\b|\btél|teléfono"
    r"|telefono|telefone|telefon"
    r"|t[eé]l[eé]phone|\bmobile\b|\bmobil\b|\bmobiel\b|mobilnummer|handynummer"
    r"|\bcell(?:phone)?\b|cellulare|celular"
    r"|\bmóvil\b|telemóvel|\bportable\b|\bhandy\b|rufnummer|\bfax\b|\bgsm\b|whatsapp|\bsms\b|komórk|\bnatel\b"
    r"|\bcall (?:me|us|him|her|them|my)\b|\btext (?:me|us|him|her|them)\b|\bring (?:me|us|him|her)\b|\bdial\b"
    r"|\breach (?:me|us|him|her|them)\b|\b(?:my|her|his) number is\b|\bmeine nummer\b"
    r"|\berreichbar\b|\bruf\w* mich\b"
    r"|\bappele|\bmon numéro\b|\bllám|\bmi número\b|\bchiama|\bmio numero\b|\bligue\b"
    r"|\bmeu número\b|\bbel (?:me|mij)\b"
    r"|телефон|позвони|звоните|мобильн|電話|电话|手机|携帯|전화|휴대폰|τηλέφωνο|هاتف)",
    re.IGNORECASE,
)
_DAY: Final = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])[0-3]\d")
_NEAR: Final = 40
"""Characters before a number in which a word may say that it is a phone's."""
REGIONS: Final = (
    *(
        "US",
        "GB",
        "DE",
        "FR",
        "ES",
        "IT",
        "CH",
        "AT",
        "NL",
        "BE",
        "PT",
        "PL",
        "SE",
        "NO",
        "DK",
        "FI",
        "IE",
        "CZ",
    ),
    *(
        "GR",
        "RU",
        "UA",
        "TR",
        "IL",
        "IN",
        "CN",
        "JP",
        "KR",
        "AU",
        "NZ",
        "ZA",
        "NG",
        "BR",
        "MX",
        "AR",
        "CL",
        "CO",
    ),
)
"""Whose national numbers are known, the first that fits counting."""


def phones(text: str) -> Iterator[tuple[int, int]]:
    """Where phone numbers stand; some twice."""
    within = windows(text, least=7)
    if not within:
        return
    for match in matches(_INTERNATIONAL, text, within):
        number = _shortened(match.group(), ())
        if number:
            yield match.start(), match.start() + len(number)
    for match in matches(_AMERICAN, text, within):
        if _valid(match.group(), "US"):
            yield match.span()
    if _CUE.search(text) is None:
        return
    for match in matches(_NATIONAL, text, within):
        before = text[max(0, match.start() - _NEAR) : match.start()]
        if _CUE.search(before.rpartition("\n")[2]) and not _DAY.fullmatch(match.group()):
            number = _shortened(match.group(), REGIONS)
            if number:
                yield match.start(), match.start() + len(number)


def _shortened(found: str, regions: tuple[str, ...]) -> str:
    """The number with which the text begins, without what follows it after a gap; empty where none does."""
    for _ in range(4):
        number = "+" + found[2:] if found.startswith("00") and not regions else found
        if any(_valid(number, region) for region in regions or (None,)):
            return found
        shorter = re.sub(rf"{_GAP}+\d*\Z", "", found)
        if shorter == found:
            break
        found = shorter
    return ""


@lru_cache(maxsize=1024)
def _valid(number: str, region: str | None) -> bool:
    import phonenumbers

    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(number, region))
    except phonenumbers.NumberParseException:
        return False
