"""Find secrets, card and account numbers, email addresses and phone numbers in a text."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from conspectus.errors import optional
from conspectus.model.sensitive_reports import CATEGORIES, SensitiveCategory

EXTRA: Final = "secrets"
_NAMES: Final = {
    "secrets": "secret",
    "cards": "card",
    "accounts": "account",
    "emails": "email",
    "phones": "phone",
}
_CARD = re.compile(
    r"(?<![\w.+-])(?:\d{13,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|\d{4}([ -])\d{6}\2\d{5})(?![\w-])",
    re.ASCII,
)
_ISSUERS = re.compile(r"4|5[1-5]|2(?:2[2-9]|[3-6]|7[01]|720)|3[47]|3[0568]|6(?:011|2|4[4-9]|5)")
_ACCOUNT = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)", re.ASCII)
_EMAIL = re.compile(
    r"(?<![\w.+%-])[\w.+%-]{1,64}@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}(?![\w-])"
)
_PHONE = re.compile(r"(?<!\w)[+\uFF0B](?:[ ().-]{0,2}\d){7,15}(?!\d)")
PHONE_TRIES: Final = 3


class SensitiveSpan(NamedTuple):
    """Characters [start, end) of a text with a secret or personal data; `kind` is the kind of secret."""

    category: SensitiveCategory
    kind: str
    start: int
    end: int

    @property
    def name(self) -> str:
        """What it is, in words."""
        if self.kind:
            return f"{_NAMES[self.category]}: {self.kind}"
        return _NAMES[self.category]


def find_sensitive(text: str, categories: Iterable[SensitiveCategory] = CATEGORIES) -> list[SensitiveSpan]:
    """Return secrets and personal data in the order of the text, without overlaps.

    Of overlapping ones the first category counts, for all of their characters. Raises MissingExtra.
    """
    selected = set(categories)
    spans = [span for name in CATEGORIES if name in selected for span in _FINDERS[name](text)]
    joined: list[SensitiveSpan] = []
    for span in sorted(spans, key=lambda span: (span.start, CATEGORIES.index(span.category))):
        if joined and span.start < joined[-1].end:
            joined[-1] = joined[-1]._replace(end=max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return joined


@cache
def _scanner() -> Any:
    """Return the scanner of secrets, whose rules are compiled once. It uses no network."""
    library = optional("kingfisher_sdk", EXTRA, "kingfisher-secret-scanner")
    return library.Scanner(library.Rules(confidence="medium"), redact=False)


def _secrets(text: str) -> Iterator[SensitiveSpan]:
    data = text.encode("utf-8", "replace")
    seen = sorted(
        (
            finding_fields["location"]["start_offset"],
            finding_fields["location"]["end_offset"],
            finding_fields["rule_id"],
        )
        for finding_fields in (finding.to_dict() for finding in _scanner().scan(data))
    )
    ends = [border for start, end, _ in seen for border in (start, end)]
    characters = _characters(data, sorted(set(ends)))
    for start, end, rule in seen:
        yield SensitiveSpan(
            "secrets", rule.rpartition(".")[2].replace("-", " "), characters[start], characters[end]
        )


def _characters(data: bytes, borders: Sequence[int]) -> Mapping[int, int]:
    """Return the characters before each border of UTF-8."""
    if data.isascii():
        return {border: border for border in borders}
    pieces = [
        data[start:end].decode(errors="ignore") for start, end in zip([0, *borders], borders, strict=False)
    ]
    return dict(zip(borders, accumulate(map(len, pieces)), strict=True))


def _matching(category: SensitiveCategory, pattern: re.Pattern[str], holds: Callable[[str], bool]) -> Any:
    def find(text: str) -> Iterator[SensitiveSpan]:
        for match in pattern.finditer(text):
            if holds(match[0]):
                yield SensitiveSpan(category, "", match.start(), match.end())

    return find


def _is_card(text: str) -> bool:
    """Whether an issuer has the number, and its check digit is right (Luhn)."""
    digits = re.sub(r"[ -]", "", text)
    doubled = (int(digit) * (1 + position % 2) for position, digit in enumerate(reversed(digits)))
    return _ISSUERS.match(digits) is not None and sum(value - 9 * (value > 9) for value in doubled) % 10 == 0


def _is_account(text: str) -> bool:
    """Whether the check digits of an IBAN are right (ISO 7064)."""
    plain = text.replace(" ", "")
    return int("".join(str(int(character, 36)) for character in plain[4:] + plain[:4])) % 97 == 1


def _phones(text: str) -> Iterator[SensitiveSpan]:
    """Yield phone numbers with a country code."""
    for match in _PHONE.finditer(text):
        library, end = optional("phonenumbers", EXTRA, "phonenumbers"), match.end()
        for _ in range(PHONE_TRIES):
            if _is_phone(library, text[match.start() : end]):
                yield SensitiveSpan("phones", "", match.start(), end)
                break
            # What follows a space may be another number.
            end = max(text.rfind(" ", match.start(), end), match.start())


def _is_phone(library: Any, text: str) -> bool:
    try:
        return bool(library.is_valid_number(library.parse(text)))
    except library.NumberParseException:
        return False


_FINDERS: Final[Mapping[str, Callable[[str], Iterable[SensitiveSpan]]]] = MappingProxyType(
    {
        "secrets": _secrets,
        "cards": _matching("cards", _CARD, _is_card),
        "accounts": _matching("accounts", _ACCOUNT, _is_account),
        "emails": _matching("emails", _EMAIL, lambda _: True),
        "phones": _phones,
    }
)
