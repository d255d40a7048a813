"""Numbers for Prometheus, in a registry of the application's own."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from conspectus.model.jobs import JobState

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
MEDIA_TYPE = CONTENT_TYPE_PLAIN_0_0_4


class Metrics:
    """What is counted while requests are answered."""

    def __init__(self, version: str) -> None:
        self.registry = CollectorRegistry()
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
        self.in_flight = Gauge(
            "conspectus_requests_in_flight", "Requests being answered or waiting.", registry=self.registry
        )
        self.waiting = Gauge(
            "conspectus_requests_waiting", "Requests waiting for their turn.", registry=self.registry
        )
        self.chats = Gauge("conspectus_chats_in_flight", "Chats being answered.", registry=self.registry)
        self._jobs = Gauge("conspectus_jobs", "Jobs by state.", ("state",), registry=self.registry)
        build = Gauge("conspectus_build", "The version that runs.", ("version",), registry=self.registry)
        build.labels(version).set(1)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request that is over; status 0 says that no answer was sent."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def jobs(self, states: Mapping[JobState, int]) -> None:
        """Note how many jobs there are in each state."""
        self._jobs.clear()
        for state, count in states.items():
            self._jobs.labels(state).set(count)

    def text(self) -> bytes:
        """Everything in the text format of Prometheus."""
        return generate_latest(self.registry)
