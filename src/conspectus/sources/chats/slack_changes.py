"""Edits and deletions that a Slack export has as events of their own, after the messages that they change."""

from collections.abc import Iterable, Mapping
from dataclasses import field

from conspectus.deferred import dataclass
from conspectus.sources.chats.export_messages import DELETED as DELETED_MESSAGES
from conspectus.sources.json_values import as_mapping, text_in
from conspectus.sources.notices import Notices

CHANGED, DELETED, TOMBSTONE = "message_changed", "message_deleted", "tombstone"
KEPT_FIELDS = ("ts", "user", "bot_id", "username", "bot_profile", "user_profile", "thread_ts", "reactions")
"""Fields of a message that an edit may leave out."""


@dataclass(slots=True)
class SlackHistory:
    """The entries of a channel with their positions, as edits leave them; `deleted` are timestamps."""

    entries: list[tuple[str, object]] = field(default_factory=list)
    deleted: dict[str, None] = field(default_factory=dict)


def apply_changes(located_values: Iterable[tuple[str, object]], notices: Notices) -> SlackHistory:
    """Return the messages of a channel in their last state, without deleted ones and without the events."""
    history = SlackHistory()
    edits: dict[str, tuple[str, str, Mapping[str, object]]] = {}
    for location, value in located_values:
        event = as_mapping(value)
        kind, stamp = text_in(event, "subtype"), stamp_in(event)
        if kind == DELETED:
            deleted = stamp_in(event, "deleted_ts") or stamp_in(as_mapping(event.get("previous_message")))
            history.deleted[deleted] = None
        elif kind == CHANGED:
            edited = as_mapping(event.get("message"))
            if not stamp_in(edited):
                notices.note("edits of unknown messages, skipped", location)
            elif stamp >= edits.get(stamp_in(edited), ("",))[0]:
                edits[stamp_in(edited)] = stamp, location, edited
        else:
            history.entries.append((location, value))
            edits |= {stamp: (stamp, location, event)} if kind == TOMBSTONE else {}
    history.deleted |= {
        stamp: None for stamp, (_, _, edited) in edits.items() if text_in(edited, "subtype") == TOMBSTONE
    }
    history.deleted.pop("", None)
    history.entries = _last_states(history, edits)
    for _ in history.deleted:
        notices.note(DELETED_MESSAGES)
    return history


def _last_states(
    history: SlackHistory, edits: Mapping[str, tuple[str, str, Mapping[str, object]]]
) -> list[tuple[str, object]]:
    """Return the entries with their edits in place, and messages of which only an edit is there."""
    entries: list[tuple[str, object]] = []
    unedited = dict(edits)
    for location, value in history.entries:
        stamp = stamp_in(as_mapping(value))
        if stamp in history.deleted:
            continue
        edit = unedited.pop(stamp, None) if stamp else None
        entries.append((location, value if edit is None else _with_edit(as_mapping(value), edit[0], edit[2])))
    for stamp, (at, location, edited) in unedited.items():
        if stamp and stamp not in history.deleted:
            entries.append((location, _with_edit({}, at, edited)))
    return entries


def _with_edit(original: Mapping[str, object], at: str, edited: Mapping[str, object]) -> Mapping[str, object]:
    """Return the edited message with the fields that the edit leaves out."""
    kept = {name: original[name] for name in KEPT_FIELDS if name in original}
    return {"type": "message", **kept, "edited": {"ts": at}, **edited, "hidden": False}


def stamp_in(message: Mapping[str, object], name: str = "ts") -> str:
    """Return a timestamp in Slack's format, also if it was written as a number; empty if there is none."""
    stamp = message.get(name)
    if isinstance(stamp, int | float) and not isinstance(stamp, bool) and 0 < stamp < 1e11:
        return f"{stamp:.6f}"
    return stamp.strip() if isinstance(stamp, str) else ""
