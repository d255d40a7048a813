"""Sessions of browsers know the identity that signed in, and its session at the issuer."""

import sqlalchemy as sa
from alembic import op

from conspectus.records.tables.core import String, Text

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add both columns; sessions so far began with a key or an invitation."""
    op.add_column("sessions", sa.Column("identity", String))
    op.add_column("sessions", sa.Column("issuer_session", Text))
