"""Which platform an export is from, by what its files hold."""

import re
from collections.abc import Iterable

from conspectus.model.conversation import ArchiveKind
from conspectus.sources.chats.container import Export, Part
from conspectus.sources.chats.discord import looks_like_discord
from conspectus.sources.chats.irc import line_share
from conspectus.sources.chats.jsonl import is_message
from conspectus.sources.chats.notices import Notices
from conspectus.sources.chats.slack import is_slack
from conspectus.sources.chats.values import NotJson, load
from conspectus.sources.encoding import decode

HEAD_BYTES = 65_536
HEADS = 1_000
LINES = 50
LONGEST_LINE = 20_000
DISCORD = re.compile(r'"(?:guild|channel)"\s*:\s*\{|"messages"\s*:\s*\[')
SUFFIXES: dict[ArchiveKind, tuple[str, ...]] = {
    "discord": (".json",),
    "irc": (".log", ".txt", ".weechatlog", ".irclog"),
    "jsonl": (".jsonl", ".ndjson"),
}


def recognised(export: Export) -> ArchiveKind | None:
    """The platform that the export is from; None if it cannot be said."""
    if is_slack(export):
        return "slack"
    kinds = (_kind(export, part) for part in export.parts[:HEADS])
    return next((kind for kind in kinds if kind is not None), None)


def parts_of(export: Export, kind: ArchiveKind, notices: Notices) -> Iterable[Part]:
    """The files of an export that are of a kind; the others are noted. A single file is taken as it is."""
    if len(export.parts) == 1:
        return export.parts
    chosen = []
    for part in export.parts:
        if part.base.lower().endswith(SUFFIXES[kind]) or _kind(export, part) == kind:
            chosen.append(part)
        else:
            notices.note("other files, not read", part.name)
    return chosen


def _kind(export: Export, part: Part) -> ArchiveKind | None:
    head = export.peek(part, HEAD_BYTES)
    whole = len(head) < HEAD_BYTES
    decoded = decode(head if whole else head[: head.rfind(b"\n") + 1] or head)
    if decoded is None or not decoded.text.strip():
        return None
    text = decoded.text.removeprefix("\ufeff")
    lines = [line for line in text.split("\n") if line.strip()][:LINES]
    if text.lstrip().startswith("{"):
        return _kind_of_json(text, lines)
    return "irc" if line_share(line[:LONGEST_LINE] for line in lines) >= 0.5 else None


def _kind_of_json(text: str, lines: list[str]) -> ArchiveKind | None:
    values = [_loaded(line) for line in lines]
    if looks_like_discord(values[0]):
        return "discord"
    if any(map(is_message, values)):
        return "jsonl"
    return "discord" if DISCORD.search(text) else None


def _loaded(line: str) -> object:
    try:
        return load(line)
    except NotJson:
        return None
