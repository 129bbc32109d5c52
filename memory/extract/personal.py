"""Personal data out of text, by choice: e-mail and IP addresses, phone numbers, IBANs, national ids.

Only what a form or a check digit gives away is looked for: a name or a street has neither, and what guesses
at them takes as many words that are none. `phonenumbers` and `stdnum` judge what stands at a place;
where that is, and how long it may be, is bounded here, so that any text takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Final, Literal, TypeAlias

from hearth.memory.extract.digits import LETTERS, matches, windows
from hearth.memory.extract.national import NATIONAL
from hearth.memory.extract.phones import phones
from hearth.memory.extract.secrets import mask_secrets

Personal: TypeAlias = Literal["email", "iban", "national-id", "ip", "phone"]
"""A kind of personal data, as its marker says it: `[personal:email]`."""
Mask: TypeAlias = Callable[[str], str]
"""What is done to a text before anything of it is stored."""
MaskFor: TypeAlias = Callable[[str, str], Mask]
"""That of a tenant and of the key by which the text comes."""
Place: TypeAlias = tuple[int, int]
"""Where something begins and ends."""

_LOCAL: Final = re.compile(rf"[{LETTERS}.!#$%&'*+=?^`{{|}}~-]{{1,64}}")
"""Read from its end."""
_DOMAIN: Final = re.compile(
    rf"(?:[{LETTERS}-]{{1,63}}\.){{1,8}}(?:xn--[a-z0-9-]{{2,59}}|[a-z\u00c0-\u052f]{{2,24}})", re.I
)
_IMAGES: Final = frozenset({"png", "jpg", "jpeg", "gif", "webp", "svg", "avif", "ico"})
"""`logo@2x.png`"""
_IBAN: Final = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ \u00a0-]?[A-Z0-9]{4}){2,7}(?:[ \u00a0-]?[A-Z0-9]{1,4})?"
    r"(?![A-Za-z0-9])",
    re.I,
)
_BYTE: Final = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_FOUR: Final = re.compile(rf"(?<![{LETTERS}.-])(?:{_BYTE}\.){{3}}{_BYTE}(?![{LETTERS}-]|\.\w)")
_SIX: Final = re.compile(
    r"(?<![\w:.])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?:(?:\.\d{1,3}){3})?(?![\w:]|\.\w)", re.I
)
_VERSIONED: Final = re.compile(
    r"(?:\b(?:v|ver|version|release|released|build|firmware|driver|section|chapter|clause|article|rev|revision|upgrade"
    r"|upgraded|abschnitt|kapitel|oid)[ .:]{0,2}(?:to |from |is |ist )?|[=<>~^]=? ?|[a-z]/|§ ?)\Z",
    re.I,
)
"""What stands before four numbers that are a version's or a section's."""
_HOST: Final = re.compile(
    r"\b(?:ip|ips|ipv4|host|server|address|adresse|ping|dns|gateway|from|login|ssh)\b", re.I
)


def _emails(text: str) -> Iterator[Place]:
    at = text.find("@")
    while at >= 0:
        local = _LOCAL.match(text[max(0, at - 64) : at][::-1])
        domain = _DOMAIN.match(text, at + 1)
        if local is not None and domain is not None:
            name = local.group()[::-1].lstrip(".!#$%&'*=?^`{|}~-")
            start = at - len(name)
            if name and name[-1] != "." and _is_email(text, start, domain):
                yield start, domain.end()
        at = text.find("@", at + 1)


def _is_email(text: str, start: int, domain: re.Match[str]) -> bool:
    """Whether it is none of what looks like one: a URL's user, a file at a host, a picture's size."""
    if text[max(0, start - 3) : start] == "://" or domain.group().rpartition(".")[2].lower() in _IMAGES:
        return False
    behind = text[domain.end() : domain.end() + 2]
    return not (len(behind) == 2 and behind[0] in ":(" and not behind[1].isspace())


def _ibans(text: str) -> Iterator[Place]:
    from stdnum import iban

    for match in matches(_IBAN, text, windows(text, least=8)):
        found = match.group()
        for _ in range(9):
            if iban.is_valid(found, check_country=False):
                yield match.start(), match.start() + len(found)
                break
            found = re.sub(r"[ \u00a0-][^ \u00a0-]*\Z", "", found)


def _ips(text: str) -> Iterator[Place]:
    for match in matches(_FOUR, text, windows(text, least=4)):
        if _is_four(match):
            yield match.span()
    if text.count(":") > 1:
        yield from (match.span() for match in _SIX.finditer(text) if _is_six(match.group()))


def _is_four(match: re.Match[str]) -> bool:
    """Whether it is somebody's address: no version, no network, no mask, not this machine itself."""
    text, address = match.string, IPv4Address(match.group())
    if (
        address.is_loopback
        or address.is_unspecified
        or address.is_multicast
        or match.group().startswith("255.")
    ):
        return False
    before = text[max(0, match.start() - 24) : match.start()]
    if _VERSIONED.search(before):
        return False
    parts = match.group().split(".")
    if all(len(part) == 1 for part in parts) and not _HOST.search(before):
        return False
    return not _is_network(match.group(), text[match.end() : match.end() + 3])


def _is_network(address: str, behind: str) -> bool:
    size = re.match(r"/(\d{1,2})(?!\d)", behind)
    if size is None or int(size[1]) > 31:
        return False
    return str(ip_network(f"{address}/{size[1]}", strict=False).network_address) == address


def _is_six(found: str) -> bool:
    """Whether it is an address, and no time, path of names (`ab::c1`), hardware address or fingerprint."""
    groups = found.split(":")
    if len(groups) < 4 and not found.lower().startswith(("2", "fe80", "fd", "fc")):
        return False
    if not any(char.isdigit() for char in found) or all(len(group) == 2 for group in groups):
        return False
    try:
        address = IPv6Address(found)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_multicast)


def _national(text: str) -> Iterator[Place]:
    within = windows(text, least=6)
    for one in NATIONAL if within else ():
        yield from one.places(text, within)


_FIND: Final[dict[Personal, Callable[[str], Iterable[Place]]]] = {
    "email": _emails,
    "iban": _ibans,
    "national-id": _national,
    "ip": _ips,
    "phone": phones,
}
"""In this order: an IBAN's digits are not looked at again for a phone's."""
KINDS: Final[tuple[Personal, ...]] = tuple(_FIND)
"""All kinds."""


def mask_personal(text: str, kinds: Iterable[Personal]) -> str:
    """`text` with what is of those kinds replaced by `[personal:<kind>]`; all else is as it was.

    Idempotent, linear in the length; never raises.
    """
    chosen = frozenset(kinds)
    for kind in KINDS:
        if kind in chosen and ("@" in text if kind == "email" else any(map(text.__contains__, "0123456789"))):
            text = _masked(text, kind)
    return text


def _masked(text: str, kind: Personal) -> str:
    kept, last = [], 0
    for start, end in sorted(_FIND[kind](text)):
        if start >= last:
            kept += [text[last:start], f"[personal:{kind}]"]
            last = end
    return "".join([*kept, text[last:]]) if kept else text


def mask_of(kinds: Iterable[Personal]) -> Mask:
    """What masks secrets, and personal data of those kinds."""
    chosen = tuple(kinds)
    return partial(_both, chosen) if chosen else mask_secrets


def masked_by(mask: Mask) -> tuple[Personal, ...]:
    """The kinds of personal data that `mask_of` was given."""
    return tuple(mask.args[0]) if isinstance(mask, partial) else ()


def secrets_alone(tenant: str, key: str) -> Mask:
    """What there is without a policy."""
    return mask_secrets


def _both(kinds: tuple[Personal, ...], text: str) -> str:
    """IBANs first: the digits of some look like a card's."""
    text = mask_personal(text, ("iban",)) if "iban" in kinds else text
    return mask_personal(mask_secrets(text), kinds)
