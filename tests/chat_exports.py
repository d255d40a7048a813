"""Small exports of chat platforms, written to disk as the platforms lay them out."""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from conspectus.model.channels import ArchiveKind, ChannelArchive, ChatArchive, NewMessage
from conspectus.sources.chats.archives import LocalArchives

USERS = [
    {"id": "U1", "name": "ann", "real_name": "Ann Lee", "profile": {"display_name": "Annie"}},
    {"id": "U2", "name": "bob", "profile": {"display_name": " ", "real_name": "Bob Ray"}, "deleted": True},
    {"id": "U3", "name": "robo", "profile": {"display_name": "Robo"}, "is_bot": True},
]
CHANNELS = [
    {
        "id": "C1",
        "name": "general",
        "members": ["U1", "U2", "U9"],
        "topic": {"value": "A &amp; B"},
        "purpose": {"value": "talk to <@U1>"},
    }
]
CONSPECTUS = LocalArchives()


def said(ts: str, text: str, **more: object) -> dict[str, object]:
    """A Slack message of Ann's."""
    return {"type": "message", "user": "U1", "ts": ts, "text": text, **more}


def slack(*messages: object, **files: object) -> dict[str, object]:
    """The files of a Slack export with one channel and one day."""
    return {
        "users.json": USERS,
        "channels.json": CHANNELS,
        "general/2024-01-05.json": list(messages),
        **files,
    }


def discord(*messages: object, **channel: object) -> dict[str, object]:
    """The file of a Discord channel."""
    about = {"id": "10", "type": "GuildTextChat", "categoryId": "1", "category": "Text", "name": "general"}
    return {
        "guild": {"id": "0", "name": "Home"},
        "channel": {**about, "topic": "all of it", **channel},
        "messages": list(messages),
    }


def posted(identifier: str, content: str, **more: object) -> dict[str, object]:
    """A Discord message of Ann's."""
    author = {"id": "1", "name": "ann", "nickname": "Annie", "isBot": False}
    moment = "2024-01-05T10:00:00.123+02:00"
    message = {"id": identifier, "type": "Default", "timestamp": moment, "content": content}
    return {**message, "author": author, **more}


def encoded(content: object) -> bytes:
    """Bytes as they are, text in UTF-8, all else as JSON."""
    if isinstance(content, bytes):
        return content
    return (content if isinstance(content, str) else json.dumps(content)).encode("utf-8", "surrogatepass")


def folder(path: Path, files: Mapping[str, object]) -> Path:
    """A folder with these files."""
    path.mkdir(exist_ok=True)
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(encoded(content))
    return path


def zipped(path: Path, files: Mapping[str, object]) -> Path:
    """A ZIP archive with these files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, encoded(content))
    return path


def read(path: Path, kind: ArchiveKind | None = None) -> ChatArchive:
    """The export at a path, within the usual limits."""
    return CONSPECTUS.read(path, kind=kind)


def only(archive: ChatArchive) -> ChannelArchive:
    """The one channel of an export."""
    (channel,) = archive.channels
    return channel


def messages(path: Path, kind: ArchiveKind | None = None) -> dict[str | None, NewMessage]:
    """The messages of the one channel at a path by their keys."""
    return {message.key: message for message in only(read(path, kind)).messages}
