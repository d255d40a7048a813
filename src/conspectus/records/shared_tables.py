"""The tables of what processes agree on: whose turn it is, and how much of what they may give is given."""

from sqlalchemy import Column, Table

from conspectus.records.tables import Number, String, schema

leases = Table(
    "leases",
    schema,
    Column("name", String, primary_key=True),
    Column("holder", String, nullable=False),
    Column("fence", Number, nullable=False),
    Column("until", Number, nullable=False),
)

allowances = Table(
    "allowances",
    schema,
    Column("name", String, primary_key=True),
    Column("minute", Number, nullable=False),
    Column("taken", Number, nullable=False),
)
