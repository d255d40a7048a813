"""Every table; importing this package adds all of them to one `MetaData`."""

from conspectus.records.tables import answers, core, experiments, graph, jobs, streams

__all__ = ["answers", "core", "experiments", "graph", "jobs", "streams"]
