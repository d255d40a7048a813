"""The tables of graphs: nodes, their names, edges with their evidence, and manual merges.

Nodes and edges have numbers in the order of recording, by which rows refer to each other. Rows that a merge
took out of a graph have the number of the merge as `aside`; all others have 0. An edge also has the ids of
its ends, so that the indexes for traversals cover all columns that a hop needs, heaviest first.
"""

from typing import Final

from sqlalchemy import (
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    Table,
    UniqueConstraint,
    literal_column,
    text,
)

from conspectus.ports.graphs import SUBJECT
from conspectus.records.tables.core import Number, String, Text, metadata

ENDED = text("closed_by IS NOT NULL")
WITHOUT_KEY = text("type_key IS NULL")

nodes = Table(
    "graph_nodes",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("graph", ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    Column("id", String, nullable=False),
    Column("aside", Number, nullable=False, server_default="0"),
    Column("type", String, nullable=False),
    Column("name", Text, nullable=False),
    Column("aliases", Text, nullable=False),
    Column("merged", Text, nullable=False, server_default="[]"),
    Column("properties", Text, nullable=False),
    Column("recorded", Number, nullable=False),
    Column("updated", Number, nullable=False),
    Column("valid_from", Number),
    Column("valid_until", Number),
    Column("passing", Integer, nullable=False),
    Column("origin", String, nullable=False, server_default="import"),
    Column("trust", String, nullable=False, server_default="standard"),
    UniqueConstraint("graph", "id", "aside"),
    Index(None, "graph", "aside", "type", "id"),
    Index(None, "id", "graph"),
)

names = Table(
    "graph_names",
    metadata,
    Column("graph", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column("node", ForeignKey("graph_nodes.number", ondelete="CASCADE"), primary_key=True),
    Column("merge", Number, nullable=False),
    Index(None, "node"),
    Index(None, "key", "graph"),
    sqlite_with_rowid=False,
)

terms = Table(
    "graph_terms",
    metadata,
    Column("graph", String, primary_key=True),
    Column("term", String, primary_key=True),
    Column("node", ForeignKey("graph_nodes.number", ondelete="CASCADE"), primary_key=True),
    Column("merge", Number, nullable=False),
    Index(None, "node"),
    sqlite_with_rowid=False,
)

edges = Table(
    "graph_edges",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("graph", ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    Column("id", String, nullable=False),
    Column("aside", Number, nullable=False, server_default="0"),
    Column("source", ForeignKey("graph_nodes.number", ondelete="CASCADE"), nullable=False),
    Column("target", ForeignKey("graph_nodes.number", ondelete="CASCADE"), nullable=False),
    Column("source_id", String, nullable=False),
    Column("target_id", String, nullable=False),
    Column("type", String, nullable=False),
    Column("weight", Float, nullable=False),
    Column("properties", Text, nullable=False),
    Column("recorded", Number, nullable=False),
    Column("updated", Number, nullable=False),
    Column("valid_from", Number),
    Column("valid_until", Number),
    Column("began", Number, nullable=False),
    Column("single", Integer, nullable=False),
    Column("stands", Integer, nullable=False),
    Column("closed_by", ForeignKey("graph_edges.number", ondelete="SET NULL")),
    Column("origin", String, nullable=False, server_default="import"),
    Column("trust", String, nullable=False, server_default="standard"),
    Column("type_key", String),
    UniqueConstraint("id", "aside"),
    Index(None, "graph", "aside"),
    Index(None, "source", "aside", "type_key"),
    Index("ix_graph_edges_closed_by", "closed_by", sqlite_where=ENDED),
    Index("ix_graph_edges_without_key", "type", sqlite_where=WITHOUT_KEY),
)
"""`began` is when an edge became valid, or was recorded; `stands` means that it needs no document.

`type_key` is the key of `type`, which spellings of one relation share. Where it is null, an older program
wrote the row, and the next start of a newer one fills it.
"""

for _name, _near, _far in (("out", "source", "target"), ("in", "target", "source")):
    Index(
        f"ix_graph_edges_{_name}",
        edges.c[_near],
        edges.c.aside,
        edges.c.weight.desc(),
        edges.c[f"{_far}_id"],
        edges.c.type,
        edges.c.valid_from,
        edges.c.valid_until,
        edges.c[_far],
        edges.c.type_key,
    )

evidence = Table(
    "graph_evidence",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("edge", ForeignKey("graph_edges.number", ondelete="CASCADE"), nullable=False),
    Column("document", ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
    Column("merge", Number, nullable=False, server_default="0"),
    UniqueConstraint("edge", "document"),
    Index(None, "document"),
)

events = Table(
    "graph_events",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("graph", ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    Column("kind", String, nullable=False),
    Column("at", Number, nullable=False),
    Column("by", String, nullable=False),
    Column("before", Text, nullable=False),
    Column("after", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("undone", Integer, nullable=False),
    Index(None, "graph", "number"),
)

moves = Table(
    "graph_moves",
    metadata,
    Column("event", ForeignKey("graph_events.number", ondelete="CASCADE"), primary_key=True),
    Column("edge", ForeignKey("graph_edges.number", ondelete="CASCADE"), primary_key=True),
    Column("source", Number, nullable=False),
    Column("target", Number, nullable=False),
    Index(None, "edge"),
    sqlite_with_rowid=False,
)
"""The ends of an edge before a merge."""


mentions = Table(
    "mentions",
    metadata,
    Column("chunk", ForeignKey("chunks.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String, primary_key=True),
    Column("surface", Text, nullable=False),
    Column("type", String, nullable=False),
    Column("start", Number, nullable=False),
    Column("end", Number, nullable=False),
    Column("collection", String, nullable=False),
    Column("source", String, nullable=False),
    Index(None, "collection", "key", "source", "chunk", "type"),
    sqlite_with_rowid=False,
)
"""`start` and `end` are those of the first mention. Collection and source, which never change, are repeated
here, so that one index finds the passages of some sources that mention a name, and its type.
"""
IS_ABOUT: Final = mentions.c.type == literal_column(f"'{SUBJECT}'")
Index(
    "ix_mentions_about",
    *(mentions.c.collection, mentions.c.key, mentions.c.source, mentions.c.chunk),
    sqlite_where=IS_ABOUT,
)
