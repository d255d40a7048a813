"""People, grants, jobs and provider calls; pages and headings of chunks; whose a collection is."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
STRING = sa.String().with_variant(sa.String(collation="C"), "postgresql")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add what a server for many people needs."""
    op.add_column("collections", sa.Column("owner", STRING, nullable=False, server_default="local"))
    op.add_column("collections", sa.Column("description", TEXT, nullable=False, server_default=""))
    op.add_column("sources", sa.Column("kind", STRING, nullable=False, server_default="manual"))
    op.add_column("chunks", sa.Column("page", NUMBER))
    op.add_column("chunks", sa.Column("heading", TEXT))
    _make_people()
    _make_keys()
    _make_grants()
    _make_jobs()
    _make_connections()
    _make_logs()


def _make_people() -> None:
    op.create_table(
        "users",
        sa.Column("id", STRING, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("owner", NUMBER, nullable=False),
        sa.Column("disabled", NUMBER, nullable=False),
        sa.Column("created", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("name", name="uq_users_name"),
    )
    op.create_table(
        "groups",
        sa.Column("id", STRING, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("created", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_groups"),
        sa.UniqueConstraint("name", name="uq_groups_name"),
    )
    op.create_table(
        "members",
        sa.Column("group", STRING, nullable=False),
        sa.Column("user", STRING, nullable=False),
        sa.PrimaryKeyConstraint("group", "user", name="pk_members"),
        _reference("members", "group", "groups.id"),
        _reference("members", "user", "users.id"),
    )
    op.create_index("ix_members_user", "members", ["user"])


def _make_keys() -> None:
    op.create_table(
        "keys",
        sa.Column("id", STRING, nullable=False),
        sa.Column("user", STRING, nullable=False),
        sa.Column("label", STRING, nullable=False),
        sa.Column("hash", STRING, nullable=False),
        sa.Column("scopes", TEXT, nullable=False),
        sa.Column("created", NUMBER, nullable=False),
        sa.Column("expires", NUMBER),
        sa.Column("last_used", NUMBER),
        sa.Column("revoked", NUMBER),
        sa.PrimaryKeyConstraint("id", name="pk_keys"),
        _reference("keys", "user", "users.id"),
    )
    op.create_index("ix_keys_user", "keys", ["user"])


def _make_grants() -> None:
    op.create_table(
        "grants",
        sa.Column("id", STRING, nullable=False),
        sa.Column("collection", STRING, nullable=False),
        sa.Column("source", STRING),
        sa.Column("user", STRING),
        sa.Column("group", STRING),
        sa.Column("role", STRING, nullable=False),
        sa.Column("created", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_grants"),
        _reference("grants", "collection", "collections.id"),
        _reference("grants", "source", "sources.id"),
        _reference("grants", "user", "users.id"),
        _reference("grants", "group", "groups.id"),
    )
    for column in ("collection", "source", "user", "group"):
        op.create_index(f"ix_grants_{column}", "grants", [column])


def _make_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", STRING, nullable=False),
        sa.Column("kind", STRING, nullable=False),
        sa.Column("owner", STRING, nullable=False),
        sa.Column("collection", STRING, nullable=False),
        sa.Column("source", STRING),
        sa.Column("title", TEXT, nullable=False),
        sa.Column("created", NUMBER, nullable=False),
        sa.Column("arguments", TEXT, nullable=False),
        sa.Column("state", STRING, nullable=False),
        sa.Column("done", NUMBER, nullable=False),
        sa.Column("total", NUMBER, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("code", STRING),
        sa.Column("error", TEXT),
        sa.Column("result", TEXT),
        sa.Column("started", NUMBER),
        sa.Column("finished", NUMBER),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        _reference("jobs", "collection", "collections.id"),
    )
    op.create_index("ix_jobs_created_id", "jobs", ["created", "id"])
    op.create_index("ix_jobs_collection_created_id", "jobs", ["collection", "created", "id"])
    op.create_index("ix_jobs_state", "jobs", ["state"])


def _make_connections() -> None:
    op.create_table(
        "connections",
        sa.Column("id", STRING, nullable=False),
        sa.Column("collection", STRING, nullable=False),
        sa.Column("owner", STRING, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("connector", STRING, nullable=False),
        sa.Column("options", TEXT, nullable=False),
        sa.Column("cursor", TEXT),
        sa.Column("state", STRING, nullable=False),
        sa.Column("error", TEXT),
        sa.Column("ran", NUMBER),
        sa.PrimaryKeyConstraint("id", name="pk_connections"),
        sa.UniqueConstraint("collection", "name", name="uq_connections_collection_name"),
        _reference("connections", "collection", "collections.id"),
    )


def _make_logs() -> None:
    op.create_table(
        "embedding_requests",
        sa.Column("id", NUMBER, autoincrement=False, nullable=False),
        sa.Column("kind", STRING, nullable=False),
        sa.Column("status", STRING, nullable=False),
        sa.Column("model", STRING, nullable=False),
        sa.Column("latency", sa.Float(), nullable=False),
        sa.Column("inputs", sa.Integer(), nullable=False),
        sa.Column("tokens", NUMBER, nullable=False),
        sa.Column("created", NUMBER, nullable=False),
        sa.Column("error", STRING),
        sa.PrimaryKeyConstraint("id", name="pk_embedding_requests"),
    )
    op.create_index("ix_embedding_requests_created", "embedding_requests", ["created"])
    op.create_table(
        "replays",
        sa.Column("person", STRING, nullable=False),
        sa.Column("key", STRING, nullable=False),
        sa.Column("fingerprint", STRING, nullable=False),
        sa.Column("answer", TEXT),
        sa.Column("created", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("person", "key", name="pk_replays"),
    )
    op.create_index("ix_replays_created", "replays", ["created"])


def _reference(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_{column}_{target.split('.', maxsplit=1)[0]}"
    return sa.ForeignKeyConstraint([column], [target], name=name, ondelete="CASCADE")
