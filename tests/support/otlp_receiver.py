"""A receiver of OTLP over HTTP: what it is sent is parsed as protobuf and kept."""

import gzip
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Span:
    """A span as it was sent; ids in hexadecimal."""

    name: str
    trace: str
    id: str
    parent: str
    kind: int
    start: int
    end: int
    failed: bool
    attributes: dict[str, Any]


def values(attributes: Any) -> dict[str, Any]:
    """Attributes by name."""
    return {
        attribute.key: getattr(attribute.value, attribute.value.WhichOneof("value"))
        for attribute in attributes
    }


@dataclass
class Receiver:
    """What has come in so far."""

    url: str = ""
    spans: list[Span] = field(default_factory=list)
    metrics: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    services: set[str] = field(default_factory=set)

    def take(self, path: str, body: bytes) -> None:
        """Keep what a request holds."""
        if path == "/v1/traces":
            self._take_spans(ExportTraceServiceRequest.FromString(body))
        elif path == "/v1/metrics":
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                    points = [values(point.attributes) for point in metric.histogram.data_points]
                    self.metrics.setdefault(metric.name, []).extend(points)
        else:
            raise ValueError(path)

    def _take_spans(self, request: ExportTraceServiceRequest) -> None:
        for resource in request.resource_spans:
            self.services.add(values(resource.resource.attributes)["service.name"])
            for span_message in (span for scope in resource.scope_spans for span in scope.spans):
                ids = (
                    span_message.trace_id.hex(),
                    span_message.span_id.hex(),
                    span_message.parent_span_id.hex(),
                )
                times = span_message.start_time_unix_nano, span_message.end_time_unix_nano
                failed = span_message.status.code == 2
                self.spans.append(
                    Span(
                        span_message.name,
                        *ids,
                        span_message.kind,
                        *times,
                        failed,
                        values(span_message.attributes),
                    )
                )

    def named(self, name: str) -> list[Span]:
        """The spans of that name."""
        return [span for span in self.spans if span.name == name]

    def until(self, condition: Callable[[], object], seconds: float = 60) -> None:
        """Wait for what is exported at intervals."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, sorted(span.name for span in self.spans)
            time.sleep(0.1)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that listens."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.take(self.path, gzip.decompress(body) if self.headers.get("Content-Encoding") else body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
