"""Numbers for Prometheus, in a registry of the application's own.

Where several processes answer at one address, each keeps its numbers in files of a folder that they share,
and the one that is scraped adds them all up: the numbers do not depend on which one that is.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from conspectus.model.jobs import JobState

FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable with the folder; the library reads it when it is imported."""
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the histogram, in seconds."""
MEDIA_TYPE = CONTENT_TYPE_PLAIN_0_0_4


class Metrics:
    """The counters of requests, of this process or, in a `folder`, of several."""

    def __init__(self, version: str, folder: Path | None = None) -> None:
        self.registry = CollectorRegistry()
        self._folder = folder
        labels = ("method", "route")
        self._requests = Counter(
            "conspectus_requests", "Requests answered.", (*labels, "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "conspectus_request_seconds",
            "How long requests took.",
            labels,
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.in_flight = self._sum("conspectus_requests_in_flight", "Requests being answered or waiting.")
        self.waiting = self._sum("conspectus_requests_waiting", "Requests waiting for their turn.")
        self.chats = self._sum("conspectus_chats_in_flight", "Chats being answered.")
        self._jobs = Gauge(
            "conspectus_jobs",
            "Jobs by state.",
            ("state",),
            registry=self.registry,
            multiprocess_mode="livemostrecent",
        )
        build = Gauge(
            "conspectus_build",
            "The version that runs.",
            ("version",),
            registry=self.registry,
            multiprocess_mode="livemax",
        )
        build.labels(version).set(1)
        self._sum("conspectus_processes", "Processes that answer requests.").set(1)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that has ended; status 0 means that no answer was sent."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def jobs(self, states: Mapping[JobState, int]) -> None:
        """Set the numbers of jobs by state."""
        for state in get_args(JobState):
            self._jobs.labels(state).set(states.get(state, 0))

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        if self._folder is None:
            return generate_latest(self.registry)
        summed_registry = CollectorRegistry()
        collector: Callable[..., object] = multiprocess.MultiProcessCollector
        collector(summed_registry, path=str(self._folder))
        return generate_latest(summed_registry)

    def _sum(self, name: str, meaning: str) -> Gauge:
        """Return a new gauge, which is summed over the live processes."""
        return Gauge(name, meaning, registry=self.registry, multiprocess_mode="livesum")


def forget_process(process: int, folder: Path) -> None:
    """Exclude a process that has ended from sums over live processes. Its counters stay."""
    mark: Callable[..., None] = multiprocess.mark_process_dead
    mark(process, path=str(folder))
