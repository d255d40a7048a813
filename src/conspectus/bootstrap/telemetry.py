"""OpenTelemetry: traces and metrics by the semantic conventions for generative AI.

Where the setting is off, this module is not loaded and no method is changed. HTTP requests and MCP messages
have spans of the libraries that serve them, which continue the trace of whoever asks.
"""

import inspect
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache, wraps
from typing import Any, Final

from conspectus.engine.job_queue import JobQueue
from conspectus.errors import ConspectusError, optional
from conspectus.ingest.job_execution import Runner
from conspectus.model.chat import Usage
from conspectus.model.jobs import Job
from conspectus.model.query import Query
from conspectus.operations.operation import SERVICES
from conspectus.operations.table import OPERATIONS
from conspectus.providers.bedrock import BedrockEmbedder
from conspectus.providers.chat_model import HostedChatModel
from conspectus.providers.hosted_embedder import HostedEmbedder
from conspectus.providers.onnx_embedder import OnnxEmbedder
from conspectus.providers.static_embedder import StaticEmbedder

EXTRA: Final = "otel"
OPERATION: Final = "gen_ai.operation.name"
GEN_AI: Final[Mapping[str, str]] = {
    "search.augment": "retrieval",
    "search.explain": "retrieval",
    "search.explain_as": "retrieval",
    "search.retrieve": "retrieval",
    "search.search_and_rerank": "retrieval",
    "search.window": "retrieval",
    "memory.add": "create_memory",
    "memory.update": "update_memory",
    "memory.forget": "delete_memory",
    "memory.recall": "search_memory",
    "memory.window": "search_memory",
}
"""The name that the conventions have for an operation; all others are named as in the library."""
TRACE: Final = "traceparent"
EMBEDDERS: Final = (
    (BedrockEmbedder, ("embed_batch",)),
    (HostedEmbedder, ("embed_batch",)),
    (OnnxEmbedder, ("embed_documents", "embed_query")),
    (StaticEmbedder, ("embed_documents", "embed_query")),
)
"""The methods that compute, one request each where a provider does."""

_steps: ContextVar[set[str] | None] = ContextVar("steps", default=None)


class Telemetry:
    """Makes spans and measures durations; content is recorded only if asked for."""

    def __init__(self, *, content: bool) -> None:
        self.content = content
        self.propagate = _part("propagate")
        self._api = _part("trace")
        self._tracer = self._api.get_tracer("conspectus")
        meter = _part("metrics").get_meter("conspectus")
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration", "s", "How long retrieval, memory, embeddings and chat took"
        )
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens of chats")
        self._other = meter.create_histogram("conspectus.operation.duration", "s", "How long operations took")

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, Any], kind: str, parent: Any = None) -> Iterator[Any]:
        """A span of this name, the current one; of an error it has the code, as its message may hold text."""
        unseen = {"record_exception": False, "set_status_on_exception": False}
        with (
            self.open_detached_span(name, attributes, kind, parent) as span,
            self._api.use_span(span, **unseen),
        ):
            yield span

    @contextmanager
    def open_detached_span(
        self, name: str, attributes: Mapping[str, Any], kind: str, parent: Any = None
    ) -> Iterator[Any]:
        """The same, but not the current one: a generator may be resumed in another context."""
        present = {key: value for key, value in attributes.items() if value is not None}
        start, measured = time.perf_counter(), dict(present)
        span = self._tracer.start_span(
            name, context=parent, kind=self._api.SpanKind[kind], attributes=present
        )

        def end(_: Any, fault: BaseException | None, __: Any) -> None:
            if fault is not None:
                code = fault.code if isinstance(fault, ConspectusError) else type(fault).__name__
                measured["error.type"] = code
                span.set_attribute("error.type", code)
                span.set_status(self._api.StatusCode.ERROR)
            span.end()
            histogram = self._duration if OPERATION in measured else self._other
            histogram.record(time.perf_counter() - start, _select_metric_attributes(measured))

        with ExitStack() as ended:
            ended.push(end)
            yield span

    def steps(self, start: int, timings: Mapping[str, float]) -> None:
        """Add a span for each measured step that has none yet, one after the other."""
        seen = _steps.get()
        for name, milliseconds in timings.items():
            end = start + int(milliseconds * 1_000_000)
            if seen is None or name not in seen:
                self._tracer.start_span(f"conspectus.{name}", start_time=start).end(end_time=end)
            if seen is not None:
                seen.add(name)
            start = end

    def record_usage(self, attributes: Mapping[str, Any], usage: Usage, span: Any) -> None:
        """Record the cost of a chat."""
        for kind, count in (("input", usage.input), ("output", usage.output)):
            span.set_attribute(f"gen_ai.usage.{kind}_tokens", count)
            self._tokens.record(count, {**_select_metric_attributes(attributes), "gen_ai.token.type": kind})

    def carrier(self) -> dict[str, str]:
        """Return the current trace as headers."""
        carried: dict[str, str] = {}
        self.propagate.inject(carried)
        return carried


def _select_metric_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes with few values, which a metric may have."""
    dimensions = (
        "error.type",
        "gen_ai.provider.name",
        OPERATION,
        "gen_ai.request.model",
        "conspectus.operation",
    )
    return {key: attributes[key] for key in dimensions if key in attributes}


@cache
def start(*, content: bool) -> Telemetry:
    """Instrument and export, once a process. Raises MissingExtra."""
    # The program may have set where traces go.
    if not isinstance(_part("trace").get_tracer_provider(), _part("sdk.trace").TracerProvider):
        _set_providers()
    telemetry = Telemetry(content=content)
    for operation in OPERATIONS.values():
        cls, _, name = operation.key.partition(".")
        service = getattr(sys.modules[operation.method.__module__], cls)
        if inspect.iscoroutinefunction(vars(service).get(name)):
            setattr(service, name, _operation(telemetry, f"{SERVICES[cls]}.{name}", vars(service)[name]))
    for embedder, names in EMBEDDERS:
        for name in names:
            setattr(embedder, name, _trace_embedding(telemetry, getattr(embedder, name)))
    places: Sequence[tuple[Any, str, Any]] = (
        (HostedChatModel, "stream", _chat),
        (JobQueue, "submit", _submission),
        (Runner, "_tries", _job),
    )
    for owner, name, replacement in places:
        setattr(owner, name, replacement(telemetry, getattr(owner, name)))
    return telemetry


def _part(name: str) -> Any:
    return optional(f"opentelemetry.{name}", EXTRA, "opentelemetry-sdk")


def _set_providers() -> None:
    """Send traces and metrics by OTLP over HTTP, as the variables OTEL_… of the environment say."""
    resource = _part("sdk.resources").Resource.create({"service.name": "conspectus"})
    spans = _part("exporter.otlp.proto.http.trace_exporter").OTLPSpanExporter()
    provider = _part("sdk.trace").TracerProvider(resource=resource)
    provider.add_span_processor(_part("sdk.trace.export").BatchSpanProcessor(spans))
    _part("trace").set_tracer_provider(provider)
    figures = _part("exporter.otlp.proto.http.metric_exporter").OTLPMetricExporter()
    reader = _part("sdk.metrics.export").PeriodicExportingMetricReader(figures)
    _part("metrics").set_meter_provider(_part("sdk.metrics").MeterProvider([reader], resource=resource))


def _operation(telemetry: Telemetry, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Trace an operation with a span, and one for each step that its result has measured."""
    generation, signature = GEN_AI.get(name), inspect.signature(method)

    @wraps(method)
    async def traced(*arguments: Any, **options: Any) -> Any:
        bound = signature.bind_partial(*arguments, **options)
        bound.apply_defaults()
        call_arguments = {**bound.arguments, **bound.arguments.get("options", {})}
        collection = _find_collection(call_arguments)
        attributes = {
            "conspectus.operation": name,
            "conspectus.collection": collection,
            OPERATION: generation,
            "gen_ai.data_source.id": collection if generation == "retrieval" else None,
            "gen_ai.retrieval.query.text": _query_text(call_arguments)
            if generation and telemetry.content
            else None,
        }
        title = f"conspectus.{name}" if generation is None else f"{generation} {collection or ''}".rstrip()
        begun, token = time.time_ns(), None if _steps.get() is not None else _steps.set(set())
        try:
            with telemetry.span(title, attributes, "INTERNAL") as span:
                result = await method(*arguments, **options)
                if hits := getattr(result, "hits", None):
                    span.set_attribute("conspectus.hits", len(hits))
                telemetry.steps(begun, getattr(result, "timings", None) or {})
                return result
        finally:
            if token is not None:
                _steps.reset(token)

    return traced


def _find_collection(arguments: Mapping[str, Any]) -> str | None:
    """Return the collection that an argument or a query names."""
    query = arguments.get("query")
    named = arguments.get("collection") or (Query(query).collection if isinstance(query, str) else None)
    named = named or getattr(query, "collection", None)
    return named if isinstance(named, str) else None


def _query_text(arguments: Mapping[str, Any]) -> str | None:
    query = arguments.get("query")
    text = query if isinstance(query, str) else getattr(query, "query", None)
    return text if isinstance(text, str) else None


def _trace_embedding(telemetry: Telemetry, method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    async def traced(self: Any, texts: Any, *kind: Any) -> Any:
        model = self.space.model
        attributes = {
            OPERATION: "embeddings",
            "gen_ai.request.model": model,
            "gen_ai.embeddings.dimension.count": self.space.dimensions,
            "conspectus.texts": 1 if isinstance(texts, str) else len(texts),
        }
        local = isinstance(self, OnnxEmbedder | StaticEmbedder)
        with telemetry.span(f"embeddings {model}", attributes, "INTERNAL" if local else "CLIENT"):
            return await method(self, texts, *kind)

    return traced


def _chat(telemetry: Telemetry, method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    async def traced(self: HostedChatModel, *arguments: Any, **options: Any) -> AsyncGenerator[Any, None]:
        provider, _, model = self.name.partition(":")
        attributes = {
            OPERATION: "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "gen_ai.request.max_tokens": options.get("max_tokens"),
        }
        with telemetry.open_detached_span(f"chat {model}", attributes, "CLIENT") as span:
            async for piece in method(self, *arguments, **options):
                if isinstance(piece, Usage):
                    telemetry.record_usage(attributes, piece, span)
                yield piece

    return traced


def _submission(telemetry: Telemetry, method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    async def traced(self: JobQueue, job: Job) -> Job:
        carried: Job = await method(self, replace(job, arguments={**job.arguments, **telemetry.carrier()}))
        return carried

    return traced


def _job(telemetry: Telemetry, method: Callable[..., Any]) -> Callable[..., Any]:
    """Trace a job in the trace of the request that submitted it, in whatever process it runs."""

    @wraps(method)
    async def traced(self: Runner, job: Job) -> None:
        parent = telemetry.propagate.extract({TRACE: str(job.arguments.get(TRACE, ""))})
        attributes = {"conspectus.job.kind": job.kind, "conspectus.job.id": job.id}
        with telemetry.span(f"conspectus.job {job.kind}", attributes, "CONSUMER", parent):
            await method(self, job)

    return traced
