"""Secrets and personal data in what is written: found, and then refused, masked or tagged."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast, get_args

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.ingest.sensitive_spans import SensitiveSpan, find_sensitive
from conspectus.model.ids import CollectionId
from conspectus.model.records import Metadata, NewDocument
from conspectus.model.sensitive_reports import CATEGORIES, SensitiveCategory
from conspectus.model.text_columns import Screening, rule_of
from conspectus.text.hashing import stable_id

Screened = TypeVar("Screened")
Action = Literal["off", "tag", "mask", "refuse"]
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
TAG: Final = "sensitive"
"""The field of metadata or properties that names the categories found in their row."""
MAX_DEPTH: Final = 32
ALIAS_DIGITS: Final = 6
"""Digits of the hash in an alias: enough to tell 1,000 texts apart, too few to find a phone number."""


@dataclass(frozen=True, slots=True)
class Screen:
    """What happens to each category in the documents of a collection."""

    actions: Mapping[SensitiveCategory, Action]

    def screen_document(self, new: NewDocument) -> NewDocument:
        """Return a document with masks and tags. Raises InvalidInput for a refused one, without its text."""
        tags: set[str] = set()
        text, moved = self._text("text", new.text, tags)
        self._refuse_name("key", new.key or "", "key", tags)
        metadata = self._value("metadata", new.metadata, tags)
        author, title, role = (
            self._value(field, getattr(new, field), tags) for field in ("author", "title", "role")
        )
        thread = self._value("thread", new.thread, tags, label=_alias)
        metadata = with_tags(metadata, tags)
        places = tuple(replace(position, start=moved(position.start)) for position in new.places)
        spans = ((moved(start), moved(end)) for start, end in new.spans)
        return replace(
            new,
            text=text,
            title=title,
            author=author,
            role=role,
            thread=thread,
            metadata=metadata,
            places=places,
            spans=tuple(span for span in spans if span[0] < span[1]),
        )

    def column(self, column: str, value: Any, *, field: str = "", tags: set[str] | None = None) -> Any:
        """Return what is stored in `table.column`, by the rules of the column; `field` names it in errors.

        Adds to `tags` the categories that a row is tagged with. Raises InvalidInput for what is refused, and
        for a name that would have to be masked.
        """
        screening, field = rule_of(column).screening, field or column.partition(".")[2]
        tags = set() if tags is None else tags
        if screening in {"text", "alias"}:
            return self._value(field, value, tags, label=_LABELS[screening])
        for text in _strings_in(value):
            self._refuse_name(field, text, screening, tags)
        return value

    def as_stored(self, column: str, value: Any) -> Any:
        """Return a text as the column has it, to look it up; nothing is refused."""
        masks = {name: action for name, action in self.actions.items() if action == "mask"}
        return Screen(masks)._value(column, value, set(), label=_LABELS[rule_of(column).screening])

    def in_report(self, value: Any, *, of_keys: bool = False) -> Any:
        """Return JSON with masks for all that is masked or refused; `of_keys`, in keys of documents."""
        masks: dict[SensitiveCategory, Action] = {
            category: "mask"
            for category, action in self.actions.items()
            if action != "tag" and not (of_keys and category in _ALLOWED.get(("key", action), ()))
        }
        return Screen(masks)._value("report", value, set())

    def _refuse_name(self, field: str, text: str, screening: Screening, tags: set[str]) -> None:
        """Raise InvalidInput for a name with what is refused, or would have to be masked; tag the rest."""
        for span in find_sensitive(text, self.actions):
            action = self.actions[span.category]
            if action == "tag" or span.category in _ALLOWED.get((screening, action), ()):
                tags.add(span.category)
                continue
            reason = "refused" if action == "refuse" else "masked"
            raise InvalidInput(
                field,
                f"characters {span.start} to {span.end} are {reason} here ({span.name}), and a name cannot be"
                " masked; remove them",
            )

    def all(self, batch: Sequence[NewDocument]) -> list[NewDocument]:
        """Return documents with masks and tags. Raises InvalidInput with the place of a refused one."""
        done = []
        for position, new in enumerate(batch):
            try:
                done.append(self.screen_document(new))
            except InvalidInput as fault:
                fault.add_note(f"document {position + 1} of {len(batch)}")
                raise
        return done

    def _text(
        self, field: str, text: str, tags: set[str], label: "Label | None" = None
    ) -> tuple[str, Callable[[int], int]]:
        """Return a text with masks, and where its characters went; note what is tagged."""
        spans = find_sensitive(text, self.actions)
        for span in spans:
            if self.actions[span.category] == "refuse":
                characters = f"characters {span.start} to {span.end}"
                raise InvalidInput(field, f"{characters} are refused here ({span.name}); remove them")
        tags.update(span.category for span in spans if self.actions[span.category] == "tag")
        masks = [
            (span, (label or _mask)(span, text)) for span in spans if self.actions[span.category] == "mask"
        ]
        return _with_masks(text, masks)

    def _value(
        self, field: str, value: Any, tags: set[str], *, label: "Label | None" = None, depth: int = 0
    ) -> Any:
        """Return JSON with masks in its texts; what is deeper than can be stored stays as it is."""
        if isinstance(value, str):
            return self._text(field, value, tags, label)[0]
        inner = partial(self._value, field, tags=tags, label=label, depth=depth + 1)
        if depth < MAX_DEPTH and isinstance(value, Mapping):
            return {inner(name) if isinstance(name, str) else name: inner(value[name]) for name in value}
        if depth < MAX_DEPTH and isinstance(value, list | tuple):
            return [inner(element) for element in value]
        return value


def with_tags(metadata: Metadata, tags: Set[str]) -> Metadata:
    """Return metadata or properties with the categories that were found in their row."""
    if not tags:
        return metadata
    before = metadata.get(TAG)
    names = {*tags, *(map(str, before) if isinstance(before, list) else ())}
    return {**metadata, TAG: [*sorted(names)]}


Label: TypeAlias = Callable[[SensitiveSpan, str], str]
"""Gives what stands in the place of a span of a text."""


def _mask(span: SensitiveSpan, text: str) -> str:
    return f"[{span.name}]"


def _alias(span: SensitiveSpan, text: str) -> str:
    digits = stable_id("alias", text[span.start : span.end].casefold())[:ALIAS_DIGITS]
    return f"[{span.name} {digits}]"


_LABELS: Final[Mapping[str, Label]] = MappingProxyType({"text": _mask, "alias": _alias})
_CONTACTS: Final = frozenset({"emails", "phones"})
_ALLOWED: Final[Mapping[tuple[Screening, Action], Set[str]]] = MappingProxyType(
    {
        ("key", "mask"): frozenset(CATEGORIES) - {"secrets"},
        ("account", "mask"): _CONTACTS,
        ("account", "refuse"): _CONTACTS,
    }
)
"""What names may contain although texts may not. Ids in keys may look like card numbers."""


def _strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from chain.from_iterable(map(_strings_in, chain(value, value.values())))
    elif isinstance(value, list | tuple):
        yield from chain.from_iterable(map(_strings_in, value))


def _with_masks(text: str, masks: Sequence[tuple[SensitiveSpan, str]]) -> tuple[str, Callable[[int], int]]:
    """Return a text with masks, and a function from old positions to new ones."""
    pieces, last = [], 0
    for span, mask in masks:
        pieces += [text[last : span.start], mask]
        last = span.end

    def move_position(position: int) -> int:
        shift = 0
        for span, mask in masks:
            if position < span.end:
                return min(position, span.start) + shift
            shift += len(mask) - (span.end - span.start)
        return position + shift

    return "".join([*pieces, text[last:]]), move_position


@cache
def screens(setting: str) -> Mapping[str, Screen]:
    """Parse a setting: `CATEGORY=ACTION`, with `COLLECTION:` before it for one collection, by commas.

    The result has the screen of each collection id, and under `""` that of all others. Raises InvalidInput.
    """
    rules: dict[str, dict[SensitiveCategory, Action]] = {"": {}}
    for part in filter(None, (rule.strip() for rule in setting.split(","))):
        left, _, action = part.rpartition("=")
        collection, _, category = left.rpartition(":")
        if category not in CATEGORIES or action not in ACTIONS:
            allowed = f"one of {', '.join(CATEGORIES)}, and one of {', '.join(ACTIONS)}"
            raise InvalidInput(TAG, f"{part!r} is not [COLLECTION:]CATEGORY=ACTION with {allowed}")
        rules.setdefault(collection.strip(), {})[category] = action
    screens_by_key: dict[str, Screen] = {}
    for collection, own_actions in rules.items():
        actions = {
            name: action_name
            for name, action_name in {**rules[""], **own_actions}.items()
            if action_name != "off"
        }
        for key in {"": ("",)}.get(collection, (collection, stable_id("collection", collection))):
            screens_by_key[key] = Screen(MappingProxyType(actions))
    return MappingProxyType(screens_by_key)


def screen_of(setting: str, collection: CollectionId) -> Screen | None:
    """Return the screen of a collection, if it has one. Raises InvalidInput."""
    if not setting:
        return None
    by_collection = screens(setting)
    screen = by_collection.get(collection, by_collection[""])
    return screen if screen.actions else None


def mask_for_lookup(setting: str, column: str, value: Screened, collection: CollectionId) -> Screened:
    """Return a text as `table.column` of a collection has it, to look it up. Nothing is refused."""
    screen = screen_of(setting, collection)
    if screen is None:
        return value
    return cast(Screened, screen.as_stored(column, value))


def mask_report(
    setting: str, value: Screened, collection: CollectionId, *, of_keys: bool = False
) -> Screened:
    """Return a report about texts of a collection with masks for all that is masked or refused there.

    With `of_keys`, what keys of documents may contain stays.
    """
    screen = screen_of(setting, collection)
    if screen is None:
        return value
    return cast(Screened, screen.in_report(value, of_keys=of_keys))
