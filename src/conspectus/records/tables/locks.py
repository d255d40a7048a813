"""The tables of what processes agree on: whose turn it is, what may still be given, what is to be erased."""

from sqlalchemy import Column, Table

from conspectus.records.tables.core import Number, String, metadata

leases = Table(
    "leases",
    metadata,
    Column("name", String, primary_key=True),
    Column("holder", String, nullable=False),
    Column("fence", Number, nullable=False),
    Column("until", Number, nullable=False),
)

allowances = Table(
    "allowances",
    metadata,
    Column("name", String, primary_key=True),
    Column("minute", Number, nullable=False),
    Column("taken", Number, nullable=False),
)

purges = Table(
    "purges",
    metadata,
    Column("id", String, primary_key=True),
    Column("collection", String, nullable=False),
)
"""Purges that have not ended, each with the collection whose index may hold what was deleted."""
