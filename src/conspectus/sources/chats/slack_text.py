"""Text of Slack messages: markup, layout blocks, attachments and files."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from conspectus.sources.chats.export_messages import ExportUsers
from conspectus.sources.json_values import (
    as_mapping,
    items,
    mappings,
    text_in,
)

TAG = re.compile(r"<([@#!][^<>]+|[A-Za-z][A-Za-z0-9+.-]*:[^<>]+)>")
ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
DEEPEST = 20
WORDED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "text": ("{}", ("text",)),
    "emoji": (":{}:", ("name",)),
    "broadcast": ("@{}", ("range",)),
    "usergroup": ("@{}", ("usergroup_id",)),
    "date": ("{}", ("fallback",)),
    "color": ("{}", ("value",)),
}
BETWEEN: Mapping[str, str] = {"rich_text": "\n", "rich_text_list": "\n"}
PREVIEWS = ("plain_text", "preview_plain_text", "preview")
ABSENT = frozenset({"tombstone", "hidden_by_limit"})


class SlackText:
    """Replaces ids by names. `channels` are the names of channels by id."""

    def __init__(self, people: ExportUsers, channels: Mapping[str, str]) -> None:
        self._people = people
        self._channels = channels

    def full_text(self, message: Mapping[str, object]) -> str:
        """Return the text of a message, each part on lines of its own."""
        text = self.strip_markup(text_in(message, "text")) or self.blocks(message.get("blocks"))
        if "attachments" not in message and "files" not in message and "file" not in message:
            return text.strip()
        parts = [text, *map(self._attachment, mappings(message.get("attachments")))]
        parts += [self._file(file) for file in files_of(message)]
        return "\n".join(dict.fromkeys(filter(None, map(str.strip, parts))))

    def strip_markup(self, text: str) -> str:
        """Return text without markup of links and mentions."""
        if "<" in text:
            text = TAG.sub(self._tag, text)
        if "&" in text:
            for entity, character in ENTITIES:
                text = text.replace(entity, character)
        return text

    def blocks(self, value: object) -> str:
        """Return the text of layout blocks."""
        return "\n".join(filter(None, (self._block(block, 0) for block in mappings(value))))

    def person(self, identifier: str) -> str:
        """Return the name of a user, or the id if it is unknown."""
        return self._people.name(identifier) or identifier

    def _tag(self, match: re.Match[str]) -> str:
        target, _, label = match[1].partition("|")
        kind, rest = target[:1], target[1:]
        if kind == "@":
            return f"@{self._people.name(rest) or label or rest}"
        if kind == "#":
            return f"#{label or self._channels.get(rest, rest)}"
        if kind == "!":
            name, *details = rest.split("^")
            if name == "date":
                return label or details[0] if details else label
            return label or f"@{details[0] if details else name}"
        return _link(target, label)

    def _block(self, block: Mapping[str, object], depth: int) -> str:
        if depth > DEEPEST:
            return ""
        kind = text_in(block, "type")
        if kind in WORDED:
            form, names = WORDED[kind]
            return form.format(text_in(block, *names))
        text = self._own_text(block, kind)
        if text is not None:
            return text
        inner = [self._block(element, depth + 1) for element in mappings(block.get("elements"))]
        if kind == "rich_text_list":
            inner = [f"- {line}" for line in inner]
        if kind in {"", "context"}:
            return " ".join(filter(None, inner))
        return BETWEEN.get(kind, "").join(inner)

    def _own_text(self, block: Mapping[str, object], kind: str) -> str | None:
        """Return the text of a block without elements; None for a block that may have some."""
        makers: Mapping[str, Callable[[], str]] = {
            "user": lambda: f"@{self.person(text_in(block, 'user_id'))}",
            "channel": lambda: f"#{self._channels.get(named := text_in(block, 'channel_id'), named)}",
            "link": lambda: _link(text_in(block, "url"), text_in(block, "text")),
            "mrkdwn": lambda: self.strip_markup(text_in(block, "text")),
            "plain_text": lambda: text_in(block, "text"),
            "markdown": lambda: text_in(block, "text"),
            "image": lambda: text_in(block, "alt_text"),
            "section": lambda: "\n".join(filter(None, self._section(block))),
            "header": lambda: text_in(block.get("text"), "text"),
        }
        return makers[kind]() if kind in makers else None

    def _section(self, block: Mapping[str, object]) -> Iterator[str]:
        yield self.strip_markup(text_in(block.get("text"), "text"))
        for section_field in mappings(block.get("fields")):
            yield self.strip_markup(text_in(section_field, "text"))

    def _attachment(self, attachment: Mapping[str, object]) -> str:
        parts = [text_in(attachment, name) for name in ("pretext", "author_name", "title", "text")]
        for attachment_field in mappings(attachment.get("fields")):
            parts.append(
                ": ".join(
                    filter(None, (text_in(attachment_field, "title"), text_in(attachment_field, "value")))
                )
            )
        paragraphs = [self.strip_markup(part) for part in parts if part] or [
            self.blocks(attachment.get("blocks"))
        ]
        return "\n".join(filter(None, paragraphs)) or self.strip_markup(text_in(attachment, "fallback"))

    def _file(self, file: Mapping[str, object]) -> str:
        name, title = text_in(file, "name"), text_in(file, "title")
        if text_in(file, "mode") in ABSENT or not (name or title):
            return ""
        label = title if not name or name == title else f"{title} ({name})" if title else name
        preview = text_in(file, *PREVIEWS)
        return self.strip_markup(f"File: {label}") + (f"\n{preview}" if preview else "")


def files_of(message: Mapping[str, object]) -> Iterable[Mapping[str, object]]:
    """Return the files of a message, in the newer and the older format."""
    one = as_mapping(message.get("file"))
    several = [as_mapping(file) for file in items(message.get("files"))]
    return [file for file in (*several, one) if file]


def _link(target: str, label: str) -> str:
    address = target.removeprefix("mailto:")
    return f"{label} ({address})" if label and label not in address else address
