"""Collections, sources, documents, chunks, vectors, and the history of changes."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


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
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("value", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_counters"),
    )
    op.bulk_insert(counters, [{"name": name, "value": 0} for name in ("change", "chunk", "document")])


def _make_collections() -> None:
    op.create_table(
        "collections",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("model", sa.String()),
        sa.Column("dimensions", sa.Integer()),
        sa.Column("version", sa.String()),
        sa.Column("language", sa.String()),
        sa.Column("created", NUMBER, nullable=False),
        sa.Column("sequence", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_collections"),
        sa.UniqueConstraint("name", name="uq_collections_name"),
    )
    op.create_table(
        "sources",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("collection", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sources"),
        sa.UniqueConstraint("collection", "name", name="uq_sources_collection_name"),
        _reference("sources", "collection", "collections.id"),
    )


def _make_documents() -> None:
    op.create_table(
        "documents",
        sa.Column("number", NUMBER, autoincrement=False, nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("collection", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("recorded", NUMBER, nullable=False),
        sa.Column("updated", NUMBER, nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("author", sa.String()),
        sa.Column("role", sa.String()),
        sa.Column("occurred_start", NUMBER),
        sa.Column("occurred_end", NUMBER),
        sa.Column("sequence", NUMBER),
        sa.Column("parent", sa.String()),
        sa.Column("thread", sa.String()),
        sa.Column("syntax", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("error", sa.Text()),
        sa.Column("chunks", sa.Integer(), nullable=False),
        sa.Column("characters", NUMBER, nullable=False),
        sa.Column("last_chunk", NUMBER),
        sa.Column("embedded_in", sa.String()),
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
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_chunks"),
        sa.UniqueConstraint("document", "position", name="uq_chunks_document_position"),
        _reference("chunks", "document", "documents.number"),
    )
    op.create_table(
        "vectors",
        sa.Column("chunk", NUMBER, nullable=False),
        sa.Column("space", sa.String(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("chunk", "space", name="pk_vectors"),
        _reference("vectors", "chunk", "chunks.id"),
        sqlite_with_rowid=False,
    )


def _make_changes() -> None:
    op.create_table(
        "changes",
        sa.Column("sequence", NUMBER, autoincrement=False, nullable=False),
        sa.Column("collection", sa.String(), nullable=False),
        sa.Column("operation", sa.String(), nullable=False),
        sa.Column("first", NUMBER, nullable=False),
        sa.Column("last", NUMBER, nullable=False),
        sa.Column("space", sa.String()),
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
