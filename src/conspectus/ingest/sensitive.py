"""Secrets and personal data in what is written: found, and then refused, masked or tagged."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, get_args

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput, optional
from conspectus.model.ids import CollectionId
from conspectus.model.records import NewDocument
from conspectus.model.reports import CATEGORIES, SensitiveCategory
from conspectus.text.hashing import stable_id

Action = Literal["off", "tag", "mask", "refuse"]
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
TAG: Final = "sensitive"
"""The metadata field that names the categories found in a document."""
EXTRA: Final = "secrets"
MAX_DEPTH: Final = 32
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
        return f"{_NAMES[self.category]}: {self.kind}" if self.kind else _NAMES[self.category]


def find_sensitive(text: str, categories: Iterable[SensitiveCategory] = CATEGORIES) -> list[SensitiveSpan]:
    """Return secrets and personal data in the order of the text, without overlaps.

    Of overlapping ones the first category counts, for all of their characters. Raises MissingExtra.
    """
    wanted = set(categories)
    found = [each for name in CATEGORIES if name in wanted for each in _FINDERS[name](text)]
    joined: list[SensitiveSpan] = []
    for each in sorted(found, key=lambda each: (each.start, CATEGORIES.index(each.category))):
        if joined and each.start < joined[-1].end:
            joined[-1] = joined[-1]._replace(end=max(joined[-1].end, each.end))
        else:
            joined.append(each)
    return joined


@cache
def _scanner() -> Any:
    """Return the scanner of secrets, whose rules are compiled once. It uses no network."""
    library = optional("kingfisher_sdk", EXTRA, "kingfisher-secret-scanner")
    return library.Scanner(library.Rules(confidence="medium"), redact=False)


def _secrets(text: str) -> Iterator[SensitiveSpan]:
    data = text.encode("utf-8", "replace")
    seen = sorted(
        (each["location"]["start_offset"], each["location"]["end_offset"], each["rule_id"])
        for each in (found.to_dict() for found in _scanner().scan(data))
    )
    ends = [border for start, end, _ in seen for border in (start, end)]
    place = _characters(data, sorted(set(ends)))
    for start, end, rule in seen:
        yield SensitiveSpan("secrets", rule.rpartition(".")[2].replace("-", " "), place[start], place[end])


def _characters(data: bytes, borders: Sequence[int]) -> Mapping[int, int]:
    """Return the characters before each border of UTF-8."""
    if data.isascii():
        return {each: each for each in borders}
    pieces = [
        data[start:end].decode(errors="ignore") for start, end in zip([0, *borders], borders, strict=False)
    ]
    return dict(zip(borders, accumulate(map(len, pieces)), strict=True))


def _matching(category: SensitiveCategory, pattern: re.Pattern[str], holds: Callable[[str], bool]) -> Any:
    def find(text: str) -> Iterator[SensitiveSpan]:
        for found in pattern.finditer(text):
            if holds(found[0]):
                yield SensitiveSpan(category, "", found.start(), found.end())

    return find


def _is_card(text: str) -> bool:
    """Whether an issuer has the number, and its check digit is right (Luhn)."""
    digits = re.sub(r"[ -]", "", text)
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return _ISSUERS.match(digits) is not None and sum(value - 9 * (value > 9) for value in doubled) % 10 == 0


def _is_account(text: str) -> bool:
    """Whether the check digits of an IBAN are right (ISO 7064)."""
    plain = text.replace(" ", "")
    return int("".join(str(int(each, 36)) for each in plain[4:] + plain[:4])) % 97 == 1


def _phones(text: str) -> Iterator[SensitiveSpan]:
    """Yield phone numbers with a country code."""
    for found in _PHONE.finditer(text):
        library, end = optional("phonenumbers", EXTRA, "phonenumbers"), found.end()
        for _ in range(PHONE_TRIES):
            if _is_phone(library, text[found.start() : end]):
                yield SensitiveSpan("phones", "", found.start(), end)
                break
            # What follows a space may be another number.
            end = max(text.rfind(" ", found.start(), end), found.start())


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


@dataclass(frozen=True, slots=True)
class Screen:
    """What happens to each category in the documents of a collection."""

    actions: Mapping[SensitiveCategory, Action]

    def screened(self, new: NewDocument) -> NewDocument:
        """Return a document with masks and tags. Raises InvalidInput for a refused one, without its text."""
        seen: set[str] = set()
        text, moved = self._text("text", new.text, seen)
        title, _ = self._text("title", new.title, seen)
        author = None if new.author is None else self._text("author", new.author, seen)[0]
        # A masked key could be that of another document: it is tagged instead.
        masked = self._text("key", new.key or "", seen)[0] != (new.key or "")
        seen.update(each.category for each in find_sensitive(new.key or "", self.actions) if masked)
        metadata = self._value("metadata", new.metadata, seen, 0)
        if seen:
            known = metadata.get(TAG, ())
            metadata |= {TAG: sorted(seen.union(known if isinstance(known, list | tuple) else ()))}
        places = tuple(replace(each, start=moved(each.start)) for each in new.places)
        spans = tuple((moved(start), moved(end)) for start, end in new.spans)
        spans = tuple(each for each in spans if each[0] < each[1])
        return replace(
            new, text=text, title=title, author=author, metadata=metadata, places=places, spans=spans
        )

    def masked(self, field: str, value: Any) -> Any:
        """Return JSON with masks in its texts. Raises InvalidInput for what is refused."""
        return self._value(field, value, set(), 0)

    def all(self, batch: Sequence[NewDocument]) -> list[NewDocument]:
        """Return documents with masks and tags. Raises InvalidInput with the place of a refused one."""
        done = []
        for place, new in enumerate(batch):
            try:
                done.append(self.screened(new))
            except InvalidInput as fault:
                fault.add_note(f"document {place + 1} of {len(batch)}")
                raise
        return done

    def _text(self, field: str, text: str, seen: set[str]) -> tuple[str, Callable[[int], int]]:
        """Return a text with masks, and where its characters went; note what is tagged."""
        found = find_sensitive(text, self.actions)
        for each in found:
            if self.actions[each.category] == "refuse":
                place = f"characters {each.start} to {each.end}"
                raise InvalidInput(field, f"{place} are refused here ({each.name}); remove them")
        seen.update(each.category for each in found if self.actions[each.category] == "tag")
        masked = [each for each in found if self.actions[each.category] == "mask"]
        return _masked(text, masked)

    def _value(self, field: str, value: Any, seen: set[str], depth: int) -> Any:
        """Return metadata with masks in its texts; deeper metadata than can be stored stay as they are."""
        if isinstance(value, str):
            return self._text(field, value, seen)[0]
        if depth < MAX_DEPTH and isinstance(value, Mapping):
            return {name: self._value(field, each, seen, depth + 1) for name, each in value.items()}
        if depth < MAX_DEPTH and isinstance(value, list | tuple):
            return [self._value(field, each, seen, depth + 1) for each in value]
        return value


def _masked(text: str, found: Sequence[SensitiveSpan]) -> tuple[str, Callable[[int], int]]:
    pieces, last = [], 0
    for each in found:
        pieces += [text[last : each.start], f"[{each.name}]"]
        last = each.end

    def moved(place: int) -> int:
        shift = 0
        for each in found:
            if place < each.end:
                return min(place, each.start) + shift
            shift += len(f"[{each.name}]") - (each.end - each.start)
        return place + shift

    return "".join([*pieces, text[last:]]), moved


@cache
def screens(setting: str) -> Mapping[str, Screen]:
    """Parse a setting: `CATEGORY=ACTION`, with `COLLECTION:` before it for one collection, by commas.

    The result has the screen of each collection id, and under `""` that of all others. Raises InvalidInput.
    """
    rules: dict[str, dict[SensitiveCategory, Action]] = {"": {}}
    for part in filter(None, (each.strip() for each in setting.split(","))):
        left, _, action = part.rpartition("=")
        collection, _, category = left.rpartition(":")
        if category not in CATEGORIES or action not in ACTIONS:
            allowed = f"one of {', '.join(CATEGORIES)}, and one of {', '.join(ACTIONS)}"
            raise InvalidInput(TAG, f"{part!r} is not [COLLECTION:]CATEGORY=ACTION with {allowed}")
        rules.setdefault(collection.strip(), {})[category] = action
    found: dict[str, Screen] = {}
    for collection, own in rules.items():
        actions = {name: each for name, each in {**rules[""], **own}.items() if each != "off"}
        for key in {"": ("",)}.get(collection, (collection, stable_id("collection", collection))):
            found[key] = Screen(MappingProxyType(actions))
    return MappingProxyType(found)


def screen_of(setting: str, collection: CollectionId) -> Screen | None:
    """Return the screen of a collection, if it has one. Raises InvalidInput."""
    if not setting:
        return None
    known = screens(setting)
    found = known.get(collection, known[""])
    return found if found.actions else None
