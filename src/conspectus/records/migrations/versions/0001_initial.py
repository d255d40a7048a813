"""Collections, sources, documents, chunks, vectors, and the history of changes."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
STRING = sa.String().with_variant(sa.String(collation="C"), "postgresql")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make every table of the first version."""
    _make_counters()
    _make_collections()
    _make_documents()
    _make_document_indices()
    _make_chunks()
    _make_changes()


def _make_counters() -> None:
    counters = op.create_table(
        "counters",
        sa.Column("name", STRING, nullable=False),
        sa.Column("value", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_counters"),
    )
    op.bulk_insert(counters, [{"name": name, "value": 0} for name in ("change", "chunk", "document")])


def _make_collections() -> None:
    op.create_table(
        "collections",
        sa.Column("id", STRING, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("model", STRING),
        sa.Column("dimensions", sa.Integer()),
        sa.Column("version", STRING),
        sa.Column("language", STRING),
        sa.Column("created", NUMBER, nullable=False),
        sa.Column("sequence", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_collections"),
        sa.UniqueConstraint("name", name="uq_collections_name"),
    )
    op.create_table(
        "sources",
        sa.Column("id", STRING, nullable=False),
        sa.Column("collection", STRING, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("metadata", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sources"),
        sa.UniqueConstraint("collection", "name", name="uq_sources_collection_name"),
        _reference("sources", "collection", "collections.id"),
    )


def _make_documents() -> None:
    op.create_table(
        "documents",
        sa.Column("number", NUMBER, autoincrement=False, nullable=False),
        sa.Column("id", STRING, nullable=False),
        sa.Column("collection", STRING, nullable=False),
        sa.Column("source", STRING, nullable=False),
        sa.Column("kind", STRING, nullable=False),
        sa.Column("key", STRING, nullable=False),
        sa.Column("title", TEXT, nullable=False),
        sa.Column("content_hash", STRING, nullable=False),
        sa.Column("fingerprint", STRING, nullable=False),
        sa.Column("recorded", NUMBER, nullable=False),
        sa.Column("updated", NUMBER, nullable=False),
        sa.Column("metadata", TEXT, nullable=False),
        sa.Column("author", STRING),
        sa.Column("role", STRING),
        sa.Column("occurred_start", NUMBER),
        sa.Column("occurred_end", NUMBER),
        sa.Column("sequence", NUMBER),
        sa.Column("parent", STRING),
        sa.Column("thread", STRING),
        sa.Column("syntax", STRING, nullable=False),
        sa.Column("status", STRING, nullable=False),
        sa.Column("error", TEXT),
        sa.Column("chunks", sa.Integer(), nullable=False),
        sa.Column("characters", NUMBER, nullable=False),
        sa.Column("last_chunk", NUMBER),
        sa.Column("embedded_in", STRING),
        sa.Column("order_sequence", NUMBER, nullable=False),
        sa.Column("order_start", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_documents"),
        sa.UniqueConstraint("id", name="uq_documents_id"),
        sa.UniqueConstraint("source", "key", name="uq_documents_source_key"),
        _reference("documents", "collection", "collections.id"),
        _reference("documents", "source", "sources.id"),
        _reference("documents", "parent", "documents.id"),
    )


def _make_document_indices() -> None:
    _index("collection_recorded_id", ["collection", "recorded", "id"])
    _index("collection_last_chunk_embedded_in", ["collection", "last_chunk", "embedded_in"])
    _index(
        "thread",
        ["source", "thread", "order_sequence", "order_start", "id"],
        "thread IS NOT NULL AND chunks > 0",
    )
    _index("pending", ["collection", "last_chunk"], "status = 'pending'")
    _index("parent", ["parent"], "parent IS NOT NULL")


def _make_chunks() -> None:
    op.create_table(
        "chunks",
        sa.Column("id", NUMBER, autoincrement=False, nullable=False),
        sa.Column("document", NUMBER, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("start", NUMBER, nullable=False),
        sa.Column("end", NUMBER, nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("content_hash", STRING, nullable=False),
        sa.Column("text", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_chunks"),
        sa.UniqueConstraint("document", "position", name="uq_chunks_document_position"),
        _reference("chunks", "document", "documents.number"),
    )
    op.create_table(
        "vectors",
        sa.Column("chunk", NUMBER, nullable=False),
        sa.Column("space", STRING, nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("chunk", "space", name="pk_vectors"),
        _reference("vectors", "chunk", "chunks.id"),
        sqlite_with_rowid=False,
    )


def _make_changes() -> None:
    op.create_table(
        "changes",
        sa.Column("sequence", NUMBER, autoincrement=False, nullable=False),
        sa.Column("collection", STRING, nullable=False),
        sa.Column("operation", STRING, nullable=False),
        sa.Column("first", NUMBER, nullable=False),
        sa.Column("last", NUMBER, nullable=False),
        sa.Column("space", STRING),
        sa.Column("transaction", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("sequence", name="pk_changes"),
        _reference("changes", "collection", "collections.id"),
    )
    op.create_index("ix_changes_collection_sequence", "changes", ["collection", "sequence"])


def _index(name: str, columns: list[str], condition: str | None = None) -> None:
    where = None if condition is None else sa.text(condition)
    op.create_index(f"ix_documents_{name}", "documents", columns, sqlite_where=where, postgresql_where=where)


def _reference(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_{column}_{target.partition('.')[0]}"
    return sa.ForeignKeyConstraint([column], [target], name=name, ondelete="CASCADE")
