"""Slack exports: lists of users and channels, and for each channel a folder with one file per day."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from conspectus.deferred import dataclass
from conspectus.model.channels import ChannelArchive
from conspectus.model.records import Json
from conspectus.sources.chats.export_files import OTHER_FILES, Export, ExportFile
from conspectus.sources.chats.export_messages import (
    ChannelNames,
    ExportUsers,
    as_key,
    as_name,
    channel_description,
    member_names,
)
from conspectus.sources.chats.slack_changes import apply_changes
from conspectus.sources.chats.slack_messages import SLACKBOT, SlackMessages
from conspectus.sources.chats.slack_text import SlackText
from conspectus.sources.json_values import (
    items,
    load_part,
    mappings,
    text_in,
)
from conspectus.sources.notices import Notices

USERS = frozenset({"users.json", "org_users.json"})
PRIVATE = {"channels.json": False, "groups.json": True, "dms.json": True, "mpims.json": True}
DAY = re.compile(r"\d{4}-\d{2}-\d{2}.*\.json", re.IGNORECASE)
DIRECT = "dms.json"


@dataclass(frozen=True, slots=True)
class _Listed:
    """A channel in one of the lists."""

    identifier: str
    name: str
    private: bool
    topic: str = ""
    purpose: str = ""
    members: tuple[str, ...] = ()


@dataclass(slots=True)
class _Layout:
    """The files of an export by content. `days` are by channel folder."""

    users: list[ExportFile] = field(default_factory=list)
    lists: list[ExportFile] = field(default_factory=list)
    days: dict[str, list[ExportFile]] = field(default_factory=lambda: defaultdict(list))
    others: list[ExportFile] = field(default_factory=list)


def is_slack(export: Export) -> bool:
    """Return whether the export has the layout of Slack."""
    if any(part.base in PRIVATE for part in export.parts):
        return True
    days = (part for part in export.parts if DAY.fullmatch(part.base))
    return any(export.peek(part, 64).lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"[") for part in days)


def read_slack(export: Export, notices: Notices) -> Iterator[ChannelArchive]:
    """Return the channels of an export that have messages."""
    layout = _read_layout(export)
    for part in layout.others:
        notices.note(OTHER_FILES, part.name)
    people, bots, accounts = _people(export, layout.users, notices)
    handles = {person: names[-1] for person, names in accounts.items()}
    channels = list(_channels(export, layout.lists, handles, notices))
    text = SlackText(people, {channel.identifier: channel.name for channel in channels if channel.identifier})
    reader = SlackMessages(people, bots, text, notices)
    names = ChannelNames()
    listed = {key: channel for channel in channels for key in _keys(channel)}
    for folder in sorted(layout.days):
        channel = listed.get(_folder(folder)) or _private_channel(folder, export, notices)
        history = apply_changes(_values(export, layout.days[folder], notices), notices)
        messages = reader.read(history.entries)
        deleted = tuple(map(as_key, history.deleted))
        if messages or deleted:
            name = names.take(channel.name, folder)
            members = tuple(accounts[member] for member in channel.members if member in accounts)
            yield ChannelArchive(name, _metadata(channel, text, notices), messages, deleted, members)
    folders = {_folder(folder) for folder in layout.days}
    for missing in sorted({channel.name for channel in channels if not folders & _keys(channel)}):
        notices.note("channels without messages, skipped", missing)


def _read_layout(export: Export) -> _Layout:
    layout = _Layout()
    folders = [part.folder for part in export.parts if part.base in PRIVATE or part.base in USERS]
    shallowest = min(folders, key=lambda folder: (folder.count("/") + bool(folder), folder), default="")
    root = f"{shallowest}/" if shallowest else ""
    for part in export.parts:
        inside = part.name.removeprefix(root)
        folder, _, base = inside.rpartition("/")
        if not part.name.startswith(root):
            layout.others.append(part)
        elif not folder and base in PRIVATE:
            layout.lists.append(part)
        elif not folder and base in USERS:
            layout.users.append(part)
        elif DAY.fullmatch(base):
            layout.days[folder].append(part)
        else:
            layout.others.append(part)
    return layout


def _people(
    export: Export, parts: Iterable[ExportFile], notices: Notices
) -> tuple[ExportUsers, set[str], Mapping[str, tuple[str, ...]]]:
    """Return the users of the workspace, the ids of bots, and e-mail address and handle by user."""
    people, accounts = ExportUsers(), {}
    bots = {SLACKBOT}
    for user in _entries(export, parts, notices):
        identifier, handle = text_in(user, "id"), text_in(user, "name")
        if not identifier:
            notices.note("users without an id, skipped")
            continue
        display_name = text_in(user.get("profile"), "display_name", "real_name") or text_in(user, "real_name")
        people.learn(identifier, display_name, handle)
        email = text_in(user.get("profile"), "email")
        accounts[identifier] = (*filter(None, [email]), handle or identifier)
        if user.get("is_bot") is True:
            bots.add(identifier)
    people.learn(SLACKBOT, "Slackbot")
    return people, bots, accounts


def _channels(
    export: Export, parts: Iterable[ExportFile], handles: Mapping[str, str], notices: Notices
) -> Iterator[_Listed]:
    for part in parts:
        for entry in _entries(export, [part], notices):
            identifier = text_in(entry, "id")
            members = tuple(member for member in items(entry.get("members")) if isinstance(member, str))
            name = text_in(entry, "name")
            if part.base == DIRECT and not name and members:
                name = f"dm-{'--'.join(sorted(handles.get(member, member) for member in members))}"
            if identifier or name:
                yield _Listed(
                    identifier,
                    as_name(name or identifier),
                    PRIVATE[part.base] or entry.get("is_private") is True,
                    text_in(entry.get("topic"), "value"),
                    text_in(entry.get("purpose"), "value"),
                    members,
                )
            else:
                notices.note("channels without a name or an id", part.name)


def _entries(export: Export, parts: Iterable[ExportFile], notices: Notices) -> Iterator[Mapping[str, object]]:
    for part in parts:
        yield from mappings(_load(export, part, notices))


def _values(export: Export, parts: Iterable[ExportFile], notices: Notices) -> Iterator[tuple[str, object]]:
    for part in parts:
        for number, value in enumerate(_load(export, part, notices), 1):
            yield f"{part.name}#{number}", value


def _load(export: Export, part: ExportFile, notices: Notices) -> list[object]:
    data = export.read(part)
    value = None if data is None else load_part(data, part.name, notices)
    if value is not None and not isinstance(value, list):
        notices.count_damage("files without a list, skipped", part.name)
    return items(value)


def _private_channel(folder: str, export: Export, notices: Notices) -> _Listed:
    """Return a private channel for a folder that no list names."""
    name = folder or export.name
    notices.note("channels missing from the lists, imported as private", name)
    return _Listed("", name, private=True)


def _keys(channel: _Listed) -> set[str]:
    """Return possible folder names of a channel."""
    return {_folder(name) for name in (channel.identifier, channel.name) if name}


def _folder(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _metadata(channel: _Listed, text: SlackText, notices: Notices) -> dict[str, Json]:
    members = member_names((text.person(member) for member in channel.members), notices)
    metadata: dict[str, Json] = {"private": channel.private}
    metadata |= channel_description(text.strip_markup(channel.topic), text.strip_markup(channel.purpose))
    return metadata | ({"members": list(members)} if members else {})
