"""Every table; importing this package adds all of them to one `MetaData`."""

from conspectus.records.tables import (
    alerts,
    chat,
    core,
    graph,
    job_files,
    jobs,
    locks,
    memory,
    mentions,
    people,
    summaries,
)

__all__ = [
    "alerts",
    "chat",
    "core",
    "graph",
    "job_files",
    "jobs",
    "locks",
    "memory",
    "mentions",
    "people",
    "summaries",
]
