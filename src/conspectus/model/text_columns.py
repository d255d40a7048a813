"""Rules for every text column of the tables: secrets and personal data, purge, and trust."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, Literal

from conspectus.deferred import dataclass

Screening = Literal["text", "alias", "name", "key", "account", "derived", "program", "exempt"]
"""How `CONSPECTUS_SENSITIVE` treats a column.

- text: refused, masked or tagged
- alias: as a text, but a mask ends with digits of a hash, so that different texts stay different
- name: refused also where masks are set, because a masked name could be that of another row
- key: as a name, but where masks are set, only secrets are refused, and the rest is tagged
- account: as a name, but email addresses and phone numbers are allowed
- derived: made from columns that were screened
- program: an id, a hash or a word of the program, where nobody writes text
- exempt: the reason says why
"""
Purging = Literal["row", "erased", "stays"]
"""A purge deletes a text with its row, erases it from a row that stays, or leaves it for the reason named."""
Trusting = Literal["level", "checked", "people"]
"""Who vouches for a text: the level of its row or document; a check that refuses attack patterns of programs;
or nobody, because it is shown to people alone and reaches no prompt."""
WRITTEN: Final = frozenset[Screening]({"text", "alias", "name", "key", "account"})
"""The columns in which people and programs write: a scan for secrets reads them."""


@dataclass(frozen=True, slots=True)
class TextColumn:
    """The rules of a text column. `reason` is required for what is exempt or stays."""

    screening: Screening
    purging: Purging = "row"
    trusting: Trusting = "people"
    reason: str = ""


PROGRAM: Final = TextColumn("program")
DOCUMENT: Final = TextColumn("text", trusting="level")
GRAPH: Final = TextColumn("text", trusting="level")
NODE: Final = replace(GRAPH, screening="alias")
DERIVED: Final = TextColumn("derived", reason="made again from the documents")
SETTING: Final = TextColumn(
    "name", "stays", trusting="checked", reason="a name that people gave; deleted with what it names"
)
ACCOUNT: Final = replace(
    SETTING, screening="account", reason="the name of an account; deleted with the account"
)
CHANGE: Final = TextColumn(
    "derived", "stays", reason="names of accounts, for who changed what; a purge of the account erases them"
)
REMOTE: Final = TextColumn(
    "exempt", "stays", reason="a person or group as a remote names it; deleted with the connection or source"
)
EXTERNAL: Final = TextColumn("exempt", reason="the id at an identity provider; deleted with the account")
FAULT: Final = TextColumn("exempt", reason="the program's words about a failure")

_PROGRAM_COLUMNS: Final[Mapping[str, str]] = {
    "alert_events": "alert document source delivery",
    "alerts": "id owner collection streams",
    "allowances": "name",
    "account_changes": "id actor key action subject collection",
    "answer_documents": "answer fingerprint",
    "answers": "id kind user collection outcome model failure candidates left_out answer_digest",
    "audit": "id actor viewed_as collection action",
    "changes": "collection operation space",
    "chunks": "content_hash unindexable box",
    "chat_answers": "stream person documents",
    "chat_frames": "stream",
    "collections": "id model version language owner retrieval",
    "connections": "id collection owner connector state access",
    "counters": "name collection",
    "deleted_memories": "document source",
    "document_names": "collection",
    "document_statements": "kind basis collection editable",
    "documents": "id collection source kind content_hash fingerprint parent syntax status origin trust"
    " embedded_in unindexable read_by",
    "embedding_requests": "kind status model error user_id",
    "feedback": "id collection user space",
    "grants": "id collection source user group role",
    "graph_edges": "graph id origin trust",
    "graph_events": "graph kind",
    "graph_evidence": "document",
    "graph_names": "graph",
    "graph_nodes": "graph origin trust",
    "graph_terms": "graph",
    "group_claims": "id issuer group",
    "groups": "id",
    "identities": "id issuer user",
    "invitations": "id user hash scopes",
    "job_files": "job",
    "job_secrets": "job",
    "jobs": "id kind owner collection source state code",
    "keys": "id user hash scopes origin",
    "leases": "name holder",
    "members": "group user issuer",
    "mentions": "type collection source",
    "provisioned_groups": "group",
    "provisioned_users": "user",
    "purges": "id collection",
    "question_evidence": "question fingerprint",
    "question_sets": "id collection",
    "questions": "id question_set",
    "replays": "person key fingerprint",
    "refused_sign_ins": "id issuer",
    "remote_members": "connection",
    "remote_people": "connection user",
    "retentions": "id collection owner",
    "run_windows": "run question passages",
    "runs": "id question_set job budgets figures",
    "sessions": "id user key hash scopes origin identity issuer_session",
    "source_viewers": "source",
    "sources": "id collection kind mirrored",
    "standing_summaries": "source owner",
    "summaries": "id source recipe",
    "summary_borders": "source recipe first_id last_id",
    "summary_captions": "summary",
    "summary_parts": "summary part",
    "users": "id",
    "vectors": "space",
}
TEXT_COLUMNS: Final[Mapping[str, TextColumn]] = MappingProxyType(
    {
        **{f"{table}.{name}": PROGRAM for table, names in _PROGRAM_COLUMNS.items() for name in names.split()},
        "alert_events.error": FAULT,
        "alert_events.reason": replace(DERIVED, reason="made from the query and the caption"),
        "alerts.filter": TextColumn("key", "stays", reason="a saved query; deleted with the alert"),
        "alerts.name": SETTING,
        "alerts.query": TextColumn("text", "stays", reason="a saved query; deleted with the alert"),
        "alerts.webhook": TextColumn("account", "stays", reason="an address; deleted with the alert"),
        "account_changes.actor_name": CHANGE,
        "account_changes.detail": CHANGE,
        "account_changes.subject_name": CHANGE,
        "answers.answer": TextColumn("text"),
        "answers.citations": TextColumn("derived"),
        "answers.cited": TextColumn("derived"),
        "answers.options": TextColumn("text"),
        "answers.prompt": TextColumn("text"),
        "answers.question": TextColumn("text"),
        "answers.window": TextColumn("derived"),
        "audit.query": TextColumn("text", "erased"),
        "group_claims.claim": replace(SETTING, reason="a group elsewhere; deleted with the group"),
        "identities.subject": TextColumn(
            "exempt", reason="the id of an account at its issuer; deleted with the user"
        ),
        "chat_frames.frame": TextColumn(
            "exempt", "erased", "level", "an answer on its way to its user; deleted when it is read"
        ),
        "chunks.heading": replace(DERIVED, trusting="level"),
        "chunks.table_header": replace(DERIVED, trusting="level"),
        "chunks.text": TextColumn("derived", trusting="level"),
        "collections.description": replace(SETTING, screening="text"),
        "collections.name": SETTING,
        "connections.cursor": replace(
            FAULT, purging="stays", reason="where a sync stopped; keys of pages that are refused are masked"
        ),
        "connections.credentials": TextColumn(
            "exempt", "stays", reason="sealed with a key that is elsewhere; deleted with the connection"
        ),
        "connections.error": TextColumn("text", "erased"),
        "connections.name": SETTING,
        "connections.options": replace(
            SETTING, screening="account", reason="addresses that a sync needs; deleted with the connection"
        ),
        "document_names.name": DERIVED,
        "document_statements.target": DERIVED,
        "documents.author": DOCUMENT,
        "documents.error": FAULT,
        "documents.key": replace(DOCUMENT, screening="key"),
        "documents.metadata": DOCUMENT,
        "documents.role": DOCUMENT,
        "documents.thread": replace(DOCUMENT, screening="alias"),
        "documents.title": DOCUMENT,
        "feedback.query": TextColumn("text"),
        "feedback.vector": DERIVED,
        "graph_edges.properties": GRAPH,
        "graph_edges.source_id": NODE,
        "graph_edges.target_id": NODE,
        "graph_edges.type": GRAPH,
        "graph_edges.type_key": DERIVED,
        "graph_events.after": replace(GRAPH, screening="derived", purging="erased"),
        "graph_events.before": replace(GRAPH, screening="derived", purging="erased"),
        "graph_events.by": replace(ACCOUNT, reason="who merged nodes; an id once the account is deleted"),
        "graph_events.reason": TextColumn("text", "erased", "checked"),
        "graph_names.key": DERIVED,
        "graph_nodes.aliases": GRAPH,
        "graph_nodes.id": NODE,
        "graph_nodes.merged": replace(GRAPH, screening="derived"),
        "graph_nodes.name": GRAPH,
        "graph_nodes.properties": GRAPH,
        "graph_nodes.type": GRAPH,
        "graph_terms.term": DERIVED,
        "groups.name": ACCOUNT,
        "job_files.data": TextColumn(
            "exempt", reason="uploads until they are read; deleted when the job ends"
        ),
        "job_secrets.secret": TextColumn("exempt", reason="headers of a request; deleted when the job ends"),
        "jobs.arguments": TextColumn("key", "erased"),
        "jobs.error": TextColumn("text", "erased"),
        "jobs.result": TextColumn("text", "erased"),
        "jobs.title": TextColumn("text", "erased"),
        "keys.label": TextColumn("text", "stays", reason="deleted with the account"),
        "mentions.key": DERIVED,
        "mentions.surface": DERIVED,
        "provisioned_groups.display_name": replace(ACCOUNT, reason="deleted with the group"),
        "provisioned_groups.external_id": EXTERNAL,
        "provisioned_users.external_id": EXTERNAL,
        "provisioned_users.name_key": replace(DERIVED, reason="the name at the provider in lower case"),
        "provisioned_users.user_name": ACCOUNT,
        "refused_sign_ins.subject": TextColumn(
            "exempt", reason="the id of an account at its issuer; deleted when it is mapped, or after 30 days"
        ),
        "remote_members.group": REMOTE,
        "remote_members.member": REMOTE,
        "remote_people.name": REMOTE,
        "source_viewers.viewer": REMOTE,
        "question_sets.name": SETTING,
        "questions.key": TextColumn("alias"),
        "questions.query": TextColumn("text"),
        "replays.answer": TextColumn(
            "exempt", "erased", "level", "an answer that is kept for a repeated request"
        ),
        "retentions.begins": replace(ACCOUNT, reason="the user a rule is for; deleted with the rule"),
        "runs.name": replace(SETTING, screening="text"),
        "runs.options": TextColumn("text", "stays", reason="options of searches; deleted with the run"),
        "sources.metadata": TextColumn("text", trusting="checked"),
        "sources.name": replace(
            SETTING, reason="a name that people gave; that of memories is purged with the last of them"
        ),
        "standing_summaries.request": TextColumn("text", trusting="checked"),
        "summaries.text": TextColumn("derived", trusting="level", reason="made again from the captions"),
        "users.name": ACCOUNT,
        "vectors.vector": DERIVED,
    }
)
"""The rules of each column, by `table.column`."""


def columns_of(table: str) -> Iterator[tuple[str, TextColumn]]:
    """Yield the text columns of a table with their rules."""
    for column, rule in TEXT_COLUMNS.items():
        owner, _, name = column.partition(".")
        if owner == table:
            yield name, rule


def rule_of(column: str) -> TextColumn:
    """Return the rules of `table.column`. Raises KeyError for a column that has none."""
    return TEXT_COLUMNS[column]
