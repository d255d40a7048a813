"""Every table; importing this package adds all of them to one `MetaData`."""

from conspectus.records.tables import answers, core, graph, jobs, streams

__all__ = ["answers", "core", "graph", "jobs", "streams"]
