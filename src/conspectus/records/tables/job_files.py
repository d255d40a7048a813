"""The tables of what jobs need besides their rows.

It is kept before a job is written down, so that no row of a job is referred to.
"""

from sqlalchemy import Column, Integer, LargeBinary, Table

from conspectus.records.tables.core import Number, String, Text, metadata

job_secrets = Table(
    "job_secrets",
    metadata,
    Column("job", String, primary_key=True),
    Column("secret", Text, nullable=False),
    Column("kept", Number, nullable=False),
)

job_files = Table(
    "job_files",
    metadata,
    Column("job", String, primary_key=True),
    Column("file", Integer, primary_key=True, autoincrement=False),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
    Column("kept", Number, nullable=False),
)
"""A file in parts, of which the first may be empty."""
