"""Standing alerts and what they told."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
STRING = sa.String().with_variant(sa.String(collation="C"), "postgresql")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
PENDING = sa.text("delivery = 'pending'")


def upgrade() -> None:
    """Add the tables."""
    _make_alerts()
    _make_events()
    counters = sa.table("counters", sa.column("name"), sa.column("value"))
    op.bulk_insert(counters, [{"name": "alert_event", "value": 0}])


def _make_alerts() -> None:
    op.create_table(
        "alerts",
        sa.Column("id", STRING, nullable=False),
        sa.Column("owner", STRING, nullable=False),
        sa.Column("collection", STRING, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("query", TEXT, nullable=False),
        sa.Column("streams", TEXT, nullable=False),
        sa.Column("where", TEXT, nullable=False),
        sa.Column("floor", sa.Float()),
        sa.Column("gap_seconds", sa.Float(), nullable=False),
        sa.Column("webhook", TEXT),
        sa.Column("created", NUMBER, nullable=False),
        sa.Column("checked", NUMBER, nullable=False),
        sa.Column("since", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_alerts"),
        sa.UniqueConstraint("owner", "collection", "name", name="uq_alerts_owner_collection_name"),
        _reference("alerts", "collection", "collections.id"),
    )
    op.create_index("ix_alerts_collection_checked", "alerts", ["collection", "checked"])


def _make_events() -> None:
    op.create_table(
        "alert_events",
        sa.Column("number", NUMBER, nullable=False, autoincrement=False),
        sa.Column("alert", STRING, nullable=False),
        sa.Column("document", STRING, nullable=False),
        sa.Column("source", STRING, nullable=False),
        sa.Column("occurred_start", NUMBER),
        sa.Column("occurred_end", NUMBER),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("created", NUMBER, nullable=False),
        sa.Column("delivery", STRING, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("error", TEXT),
        sa.Column("due", NUMBER),
        sa.PrimaryKeyConstraint("number", name="pk_alert_events"),
        _reference("alert_events", "alert", "alerts.id"),
        _reference("alert_events", "document", "documents.id"),
    )
    op.create_index(
        "ix_alert_events_alert_source_occurred_end", "alert_events", ["alert", "source", "occurred_end"]
    )
    op.create_index("ix_alert_events_document", "alert_events", ["document"])
    op.create_index(
        "ix_alert_events_pending",
        "alert_events",
        ["alert", "due"],
        sqlite_where=PENDING,
        postgresql_where=PENDING,
    )


def _reference(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_{column}_{target.split('.', maxsplit=1)[0]}"
    return sa.ForeignKeyConstraint([column], [target], name=name, ondelete="CASCADE")
