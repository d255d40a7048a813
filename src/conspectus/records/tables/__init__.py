"""Every table; importing this package adds all of them to one `MetaData`."""

from conspectus.records.tables import core, graph, jobs, streams

__all__ = ["core", "graph", "jobs", "streams"]
