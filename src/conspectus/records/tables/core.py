"""The tables of documents, as the newest migration leaves them.

A document's chunks have consecutive numbers that end at `documents.last_chunk`, so a neighbor inside a
document is one number away, and all chunks of a collection can be read in order through its documents.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    UniqueConstraint,
    literal_column,
    text,
    types,
)

VERSION = "0018"
"""The newest migration. A higher stored version comes from a newer program."""

Number = BigInteger().with_variant(Integer, "sqlite")
"""In SQLite, only a plain INTEGER primary key needs no second index."""

String = types.String().with_variant(types.String(collation="C"), "postgresql")
Text = types.Text().with_variant(types.Text(collation="C"), "postgresql")
"""Texts compared and ordered by code point, as in SQLite, whatever the locale of the database."""

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

metadata = MetaData(naming_convention=NAMING)

counters = Table(
    "counters",
    metadata,
    Column("name", String, primary_key=True),
    Column("collection", String, primary_key=True),
    Column("value", Number, nullable=False),
    Column("end", Number, nullable=False),
)
"""The last number that was assigned of each kind, and the end of the reserved range.

A collection takes its numbers from a range of its own, so that its writers wait for no others. Rows of the
collection `""` count the ranges that were reserved, and rows that belong to no collection.
"""

collections = Table(
    "collections",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("model", String),
    Column("dimensions", Integer),
    Column("version", String),
    Column("language", String),
    Column("created", Number, nullable=False),
    Column("sequence", Number, nullable=False),
    Column("owner", String, nullable=False, server_default="local"),
    Column("description", Text, nullable=False, server_default=""),
    Column("mirrors", Number, nullable=False, server_default="0"),
    Column("names_to", Number),
    Column("retrieval", Text),
    UniqueConstraint("name"),
)
"""`mirrors` is 0 without mirrored sources: only others ask for viewers. See `renew_viewers_version`.

`retrieval` are versions of the defaults of searches, the newest last.
"""

sources = Table(
    "sources",
    metadata,
    Column("id", String, primary_key=True),
    Column("collection", ForeignKey("collections.id", ondelete="CASCADE"), nullable=False),
    Column("name", String, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("kind", String, nullable=False, server_default="manual"),
    Column("hidden_from", Number),
    Column("mirrored", String),
    UniqueConstraint("collection", "name"),
)
"""From `hidden_from` on, only managers read a source: its remote has withdrawn access or is out of reach.

`mirrored` is the id of the connection whose remote says who reads the source: its `source_viewers`, and
nobody else, whatever their role.
"""

Index(
    "ix_sources_hidden",
    sources.c.collection,
    sources.c.hidden_from,
    sqlite_where=text("hidden_from IS NOT NULL"),
)
Index(
    "ix_sources_mirrored",
    sources.c.collection,
    sources.c.mirrored,
    sqlite_where=text("mirrored IS NOT NULL"),
)

THREADED = text("thread IS NOT NULL AND chunks > 0")
DATED = text("occurred_start IS NOT NULL AND chunks > 0")
IS_CAPTION_OR_EVENT = text("kind IN ('caption', 'event')")
CHILD = text("parent IS NOT NULL")
PENDING = text("status = 'pending'")
UNINDEXABLE = text("unindexable IS NOT NULL")
REMEMBERED = text("kind = 'memory'")
NOTES = text("kind = 'memory' AND thread IS NULL AND parent IS NULL")
TURNS = text("kind = 'memory' AND thread IS NOT NULL")
VERSIONED = text("kind = 'version'")
"""Conditions are literal, because a database uses a partial index only if it recognizes the condition."""

documents = Table(
    "documents",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("id", String, nullable=False),
    Column("collection", ForeignKey("collections.id", ondelete="CASCADE"), nullable=False),
    Column("source", ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    Column("kind", String, nullable=False),
    Column("key", String, nullable=False),
    Column("title", Text, nullable=False),
    Column("content_hash", String, nullable=False),
    Column("fingerprint", String, nullable=False),
    Column("recorded", Number, nullable=False),
    Column("updated", Number, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("author", String),
    Column("role", String),
    Column("occurred_start", Number),
    Column("occurred_end", Number),
    Column("sequence", Number),
    Column("parent", ForeignKey("documents.id", ondelete="CASCADE")),
    Column("thread", String),
    Column("syntax", String, nullable=False),
    Column("status", String, nullable=False),
    Column("error", Text),
    Column("chunks", Integer, nullable=False),
    Column("characters", Number, nullable=False),
    Column("origin", String, nullable=False, server_default="user"),
    Column("trust", String, nullable=False, server_default="trusted"),
    Column("last_chunk", Number),
    Column("embedded_in", String),
    Column("order_sequence", Number, nullable=False),
    Column("order_start", Number, nullable=False),
    Column("unindexable", String),
    Column("read_by", String, nullable=False, server_default="text"),
    UniqueConstraint("id"),
    UniqueConstraint("source", "key"),
    Index(None, "collection", "recorded", "id"),
    Index(None, "collection", "last_chunk", "embedded_in"),
)

QUARANTINED = documents.c.kind == literal_column("'quarantined'")

for _name, _condition, _columns in (
    ("thread", THREADED, ("source", "thread", "order_sequence", "order_start", "number")),
    ("latest", DATED, ("source", "order_start", "number")),
    ("pending", PENDING, ("collection", "status", "last_chunk")),
    ("remembered", REMEMBERED, ("source", "order_start", "number")),
    ("notes", NOTES, ("source", "number")),
    ("turns", TURNS, ("source", "number")),
    ("versions", VERSIONED, ("collection", "source")),
    ("quarantined", QUARANTINED, ("collection", "recorded", "id")),
    ("unindexable", UNINDEXABLE, ("collection", "number")),
    ("parent", CHILD, ("parent", "collection", "recorded", "id")),
    (
        "timeline",
        IS_CAPTION_OR_EVENT,
        ("source", "occurred_start", "occurred_end", "order_sequence", "key", "kind"),
    ),
):
    Index(f"ix_documents_{_name}", *(documents.c[_column] for _column in _columns), sqlite_where=_condition)
Index(
    "ix_documents_longest",
    documents.c.source,
    documents.c.occurred_end - documents.c.occurred_start,
    sqlite_where=IS_CAPTION_OR_EVENT,
)

chunks = Table(
    "chunks",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=False),
    Column("document", ForeignKey("documents.number", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("start", Number, nullable=False),
    Column("end", Number, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("content_hash", String, nullable=False),
    Column("text", Text, nullable=False),
    Column("page", Number),
    Column("heading", Text),
    Column("unindexable", String),
    Column("table_header", Text),
    Column("box", String),
    UniqueConstraint("document", "position"),
)

document_names = Table(
    "document_names",
    metadata,
    Column("document", ForeignKey("documents.number", ondelete="CASCADE"), primary_key=True),
    Column("name", String, primary_key=True),
    Column("collection", String, nullable=False),
    Index(None, "collection", "name"),
    sqlite_with_rowid=False,
)
"""The normalized names of pages: file names, paths, titles and numbers."""

document_statements = Table(
    "document_statements",
    metadata,
    Column("document", ForeignKey("documents.number", ondelete="CASCADE"), primary_key=True),
    Column("kind", String, primary_key=True),
    Column("target", String, primary_key=True),
    Column("is_inverse", Number, primary_key=True),
    Column("basis", String, primary_key=True),
    Column("collection", String, nullable=False),
    Column("editable", Text, nullable=False),
    Index(None, "collection", "target"),
    sqlite_with_rowid=False,
)
"""What documents state about others: that one supersedes, amends or duplicates the other.

`target` is a normalized name, or the id of a document where a person set the relation. `editable` has the ids
of the sources that the writer could edit, or `*`.
"""

vectors = Table(
    "vectors",
    metadata,
    Column("chunk", ForeignKey("chunks.id", ondelete="CASCADE"), primary_key=True),
    Column("space", String, primary_key=True),
    Column("vector", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

changes = Table(
    "changes",
    metadata,
    Column("sequence", Number, primary_key=True, autoincrement=False),
    Column("collection", ForeignKey("collections.id", ondelete="CASCADE"), nullable=False),
    Column("operation", String, nullable=False),
    Column("first", Number, nullable=False),
    Column("last", Number, nullable=False),
    Column("space", String),
    Column("transaction", Number, nullable=False),
    Index(None, "collection", "sequence"),
)


deleted_memories = Table(
    "deleted_memories",
    metadata,
    Column("document", String, primary_key=True),
    Column("source", ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    Column("recorded", Number, nullable=False),
    Column("deleted", Number, nullable=False),
    Index(None, "source", "deleted"),
)

retentions = Table(
    "retentions",
    metadata,
    Column("id", String, primary_key=True),
    Column("collection", ForeignKey("collections.id", ondelete="CASCADE"), nullable=False),
    Column("begins", String, nullable=False),
    Column("days", Float),
    Column("max_count", Number),
    Column("owner", String, nullable=False),
    Column("ran", Number),
    Index(None, "collection", "begins"),
)


users = Table(
    "users",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("owner", Number, nullable=False),
    Column("disabled", Number, nullable=False),
    Column("created", Number, nullable=False),
    UniqueConstraint("name"),
)

feedback = Table(
    "feedback",
    metadata,
    Column("id", String, primary_key=True),
    Column("collection", ForeignKey("collections.id", ondelete="CASCADE"), nullable=False),
    Column("chunk", ForeignKey("chunks.id", ondelete="CASCADE"), nullable=False),
    Column("user", String, nullable=False),
    Column("query", Text, nullable=False),
    Column("used", Number, nullable=False),
    Column("space", String),
    Column("vector", LargeBinary),
    Column("created", Number, nullable=False),
    Index(None, "collection", "created", "id"),
    Index(None, "chunk"),
    Index(None, "user"),
)
"""Judgments of chunks for queries; `vector` is that of the query in the embedding model `space`."""

groups = Table(
    "groups",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("created", Number, nullable=False),
    UniqueConstraint("name"),
)

members = Table(
    "members",
    metadata,
    Column("group", ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True),
    Column("user", ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("issuer", Text),
    Index(None, "user"),
)
"""Memberships: `issuer` is that of the claim that made one, and NULL if people made it."""

identities = Table(
    "identities",
    metadata,
    Column("id", String, primary_key=True),
    Column("issuer", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("user", ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("created", Number, nullable=False),
    Column("last_issued", Number),
    Index(None, "user"),
)
"""Users at issuers of tokens. The id is made of issuer and subject."""

refused_sign_ins = Table(
    "refused_sign_ins",
    metadata,
    Column("id", String, primary_key=True),
    Column("issuer", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("first", Number, nullable=False),
    Column("last", Number, nullable=False),
    Index(None, "last"),
)
"""Subjects of valid tokens that nobody is mapped to. The id is that of the identity it would be."""

source_viewers = Table(
    "source_viewers",
    metadata,
    Column("source", ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True),
    Column("viewer", String, primary_key=True),
    Index(None, "viewer"),
    sqlite_with_rowid=False,
)
"""The people and groups that read a mirrored source, by the names of its remote."""

remote_members = Table(
    "remote_members",
    metadata,
    Column("connection", String, primary_key=True),
    Column("group", String, primary_key=True),
    Column("member", String, primary_key=True),
    Index(None, "connection", "member"),
    sqlite_with_rowid=False,
)
"""The members of groups, people and groups, by the names of the remote of a connection."""

remote_people = Table(
    "remote_people",
    metadata,
    Column("connection", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("user", ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("created", Number, nullable=False),
    Index(None, "user"),
    sqlite_with_rowid=False,
)
"""The user that a person at the remote of a connection is."""

group_claims = Table(
    "group_claims",
    metadata,
    Column("id", String, primary_key=True),
    Column("issuer", Text, nullable=False),
    Column("claim", Text, nullable=False),
    Column("group", ForeignKey("groups.id", ondelete="CASCADE"), nullable=False),
    Column("created", Number, nullable=False),
    Index(None, "group"),
)
"""Claims whose bearers are members of a group."""

provisioned_users = Table(
    "provisioned_users",
    metadata,
    Column("user", ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("user_name", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    Column("external_id", Text),
    Column("active", Number, nullable=False),
    Column("modified", Number, nullable=False),
    UniqueConstraint("name_key"),
)
"""Users whom an identity provider manages by SCIM; `name_key` is their name there, in lower case.

`active` is what the provider said last; an administrator may have disabled the user since.
"""

provisioned_groups = Table(
    "provisioned_groups",
    metadata,
    Column("group", ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True),
    Column("display_name", Text, nullable=False),
    Column("external_id", Text),
    Column("modified", Number, nullable=False),
)
"""Groups that an identity provider manages by SCIM."""

keys = Table(
    "keys",
    metadata,
    Column("id", String, primary_key=True),
    Column("user", ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("label", String, nullable=False),
    Column("hash", String, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("created", Number, nullable=False),
    Column("expires", Number),
    Column("last_used", Number),
    Column("revoked", Number),
    Column("origin", String),
    Index(None, "user"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", String, primary_key=True),
    Column("user", ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("key", ForeignKey("keys.id", ondelete="CASCADE")),
    Column("hash", String, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("origin", String),
    Column("created", Number, nullable=False),
    Column("expires", Number, nullable=False),
    Column("last_used", Number, nullable=False),
    Column("identity", String),
    Column("issuer_session", Text),
    Index(None, "user"),
    Index(None, "key"),
    Index(None, "expires"),
    Index(None, "identity"),
    Index(None, "issuer_session"),
)
"""Sessions of browsers: `hash` is that of the token in the cookie, `identity` the one that signed in."""

invitations = Table(
    "invitations",
    metadata,
    Column("id", String, primary_key=True),
    Column("user", ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("hash", String, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("created", Number, nullable=False),
    Column("expires", Number, nullable=False),
    Index(None, "user"),
    Index(None, "expires"),
)
"""Invitations that nobody has accepted: `hash` is that of the token in the link."""

account_changes = Table(
    "account_changes",
    metadata,
    Column("id", String, primary_key=True),
    Column("actor", String, nullable=False),
    Column("actor_name", String, nullable=False),
    Column("key", String),
    Column("action", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("subject_name", String, nullable=False),
    Column("collection", String),
    Column("detail", Text, nullable=False),
    Column("created", Number, nullable=False),
    Index(None, "created", "id"),
)
"""Who changed users, groups, keys, grants and settings. The rows outlive what they are about."""

audit = Table(
    "audit",
    metadata,
    Column("id", String, primary_key=True),
    Column("actor", String, nullable=False),
    Column("viewed_as", String, nullable=False),
    Column("collection", ForeignKey("collections.id", ondelete="CASCADE"), nullable=False),
    Column("query", Text, nullable=False),
    Column("created", Number, nullable=False),
    Column("action", String, nullable=False, server_default="explain_as"),
    Index(None, "created", "id"),
    Index(None, "collection"),
)

grants = Table(
    "grants",
    metadata,
    Column("id", String, primary_key=True),
    Column("collection", ForeignKey("collections.id", ondelete="CASCADE"), nullable=False),
    Column("source", ForeignKey("sources.id", ondelete="CASCADE")),
    Column("user", ForeignKey("users.id", ondelete="CASCADE")),
    Column("group", ForeignKey("groups.id", ondelete="CASCADE")),
    Column("role", String, nullable=False),
    Column("created", Number, nullable=False),
    Index(None, "collection"),
    Index(None, "source"),
    Index(None, "user"),
    Index(None, "group"),
)
