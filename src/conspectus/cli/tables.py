"""Results as tables."""

from collections.abc import Iterable, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from conspectus.cli.output import cell
from conspectus.evals.injection import InjectionReport
from conspectus.evals.parsing import FormatReport
from conspectus.evals.threads import ThreadsReport
from conspectus.model.ids import is_uuid
from conspectus.model.records import Document
from conspectus.model.reports import CheckReport, FilesReport, Status
from conspectus.model.results import ContextWindow, Hit, Retrieval
from conspectus.model.similarity import Percentiles, Similarity
from conspectus.text.sentences import sentences
from conspectus.text.words import analyzer_for

BAR = 10
SHOWN = 240
EIGHTHS = " ▏▎▍▌▋▊▉"
FATES = {
    "in": "green",
    "truncated": "yellow",
    "duplicate": "dim",
    "below_floor": "red",
    "over_budget": "cyan",
}


def bar(share: float) -> str:
    """A bar of ten cells, filled by a share from 0 to 1."""
    eighths = round(min(1.0, max(0.0, share)) * BAR * 8)
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()).ljust(BAR)


def hits_table(found: Retrieval, query: str, sources: Mapping[str, str]) -> RenderableType:
    """Hits with a bar that compares their scores with the best, and with the part that matches the query.

    `sources` are names of sources by their ids.
    """
    table = _table("#", "score", "", "words", "similarity", "document", "from", "text")
    best = max((hit.score for hit in found.hits), default=0.0)
    for number, hit in enumerate(found.hits, 1):
        share = hit.score / best if best > 0 else 0.0
        table.add_row(
            str(number),
            f"{hit.score:.3f}",
            Text(bar(share), style="green"),
            _number(hit.words),
            _number(hit.similarity),
            _name(hit),
            _from(hit, sources.get(hit.document.source, "")),
            cell(excerpt(hit.chunk.text, query), limit=SHOWN),
        )
    return table


def trace_table(window: ContextWindow, limit: int) -> RenderableType:
    """The first candidates with their parts, their fate and the reason."""
    table = _table("#", "fate", "tokens", "score", "parts", "title", "reason")
    for entry in window.trace[:limit]:
        table.add_row(
            str(entry.rank),
            Text(entry.fate, style=FATES[entry.fate]),
            str(entry.tokens),
            f"{entry.score:.3f}",
            cell(_parts(entry.parts)),
            cell(entry.title or entry.document, limit=60),
            cell(entry.reason),
        )
    used = f"{window.tokens} of {window.allowed} tokens ({window.tokenizer})"
    return Group(table, Text(used))


def documents_table(documents: Iterable[Document]) -> RenderableType:
    """Documents, one a line."""
    table = _table("id", "kind", "title", "location", "status", "chunks", "recorded")
    for each in documents:
        table.add_row(
            cell(each.id),
            each.kind,
            cell(each.title, limit=60),
            cell(each.location, limit=60),
            each.status,
            str(each.chunks),
            f"{each.recorded:%Y-%m-%d %H:%M:%S}",
        )
    return table


def status_table(status: Status) -> RenderableType:
    """Collections in numbers."""
    table = _table(
        "collection",
        "sources",
        "documents",
        "chunks",
        "vectors",
        "pending",
        "errors",
        "lag",
        "segments",
        "space",
    )
    for each in status.collections:
        numbers = (
            each.sources,
            each.documents,
            each.chunks,
            each.vectors,
            each.pending,
            each.errors,
            each.lag,
        )
        table.add_row(
            cell(each.name), *map(str, numbers), str(each.index.segments), cell(each.space or "words only")
        )
    similarities = {each.space or "": each.similarity for each in status.collections if each.similarity}
    stored = (status.path, f"{status.bytes:,} bytes") if status.path else ()
    parts = [table, similarity_table(similarities)] if similarities else [table]
    return Group(Text(", ".join((*stored, f"version {status.version}"))), *parts)


def check_table(report: CheckReport) -> RenderableType:
    """Every difference that was found."""
    if report.clean:
        return Text("records and index agree")
    table = _table("where", "chunk", "problem", "detail")
    for problem in report.records:
        table.add_row("records", "", "damaged", cell(problem))
    for name, found in report.index.items():
        for each in found:
            table.add_row(cell(name), str(each.chunk), each.problem, cell(each.detail))
    return table


def files_table(report: FilesReport) -> RenderableType:
    """What became of the files, failures by name."""
    names = ("added", "replaced", "updated", "unchanged", "pruned", "skipped", "chunks")
    lines: list[RenderableType] = [Text(", ".join(f"{getattr(report, name)} {name}" for name in names))]
    if report.failures:
        table = _table("failed", "reason")
        for each in report.failures:
            table.add_row(cell(each.name), cell(each.reason))
        lines.append(table)
    return Group(*lines)


def figures_table(figures: Mapping[str, object]) -> RenderableType:
    """Nested figures, one a line."""
    table = _table("measure", "value")
    for name, value in figures.items():
        inner = value if isinstance(value, Mapping) else {"": value}
        for part, figure in inner.items():
            table.add_row(
                f"{name} {part}".strip(), f"{figure:.1f}" if isinstance(figure, float) else str(figure)
            )
    return table


def similarity_table(figures: Mapping[str, Similarity]) -> RenderableType:
    """Similarities of related and of unrelated texts: 5th, 50th and 95th percentile."""
    table = _table("similarity", "related", "unrelated")
    for name, each in figures.items():
        table.add_row(cell(name), _percentiles(each.related), _percentiles(each.unrelated))
    return table


def _percentiles(each: Percentiles) -> str:
    return f"{each.p5:.2f}  {each.p50:.2f}  {each.p95:.2f}"


def ways_table(figures: Mapping[str, Mapping[str, object]]) -> RenderableType:
    """The same figures of several ways, side by side."""
    table = _table("measure", *figures)
    for name in dict.fromkeys(name for report in figures.values() for name in report):
        values = (report.get(name, "") for report in figures.values())
        table.add_row(name, *(f"{each:.1f}" if isinstance(each, float) else str(each) for each in values))
    return table


def measures_table(figures: Mapping[str, Mapping[str, object]]) -> RenderableType:
    """A row for each way, with the measures side by side."""
    measures = dict.fromkeys(name for report in figures.values() for name in report)
    table = _table("way", *measures)
    for way, report in figures.items():
        values = (report.get(name, "") for name in measures)
        table.add_row(way, *(f"{each:.1f}" if isinstance(each, float) else str(each) for each in values))
    return table


def threads_table(report: ThreadsReport) -> RenderableType:
    """The figures of the linker beside those of answering the message before."""
    table = _table("measure", "linked", "message before")
    before: Mapping[str, object] = {**report["message_before"]}
    for name, value in report["linked"].items():
        ours, theirs = ({"": each} if isinstance(each, float) else each for each in (value, before[name]))
        if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
            for part, figure in ours.items():
                table.add_row(f"{name} {part}".strip(), f"{figure:.1f}", f"{theirs[part]:.1f}")
    counts = f"{report['judged']} of {report['messages']} messages judged, {report['channels']} channels"
    return Group(table, Text(counts))


def parsing_table(reports: Mapping[str, FormatReport]) -> RenderableType:
    """What was found in the files of each format, and the files that could not be read."""
    table = _table("format", "files", "mean", "worst", "worst file", "failed")
    failed = _table("failed", "reason")
    for name, each in reports.items():
        figures = (str(each["files"]), f"{each['mean']:.1f}", f"{each['worst']:.1f}")
        table.add_row(name, *figures, cell(each["worst_file"], limit=60), str(len(each["failures"])))
        for file, reason in each["failures"].items():
            failed.add_row(cell(file, limit=60), cell(reason))
    return Group(table, failed) if failed.row_count else table


def injection_table(report: InjectionReport) -> RenderableType:
    """What got through of each kind of attack, and how many harmless texts were changed."""
    table = _table("attacks", "texts", "got through")
    for name, each in report["kinds"].items():
        table.add_row(name, str(each["attacks"]), str(each["failed"]))
    examples = _table("got through")
    for example in report["examples"]:
        examples.add_row(cell(example, limit=240))
    harmless = _table("harmless", "texts", "changed")
    for name, texts in report["harmless"].items():
        harmless.add_row(name, str(texts["texts"]), str(texts["changed"]))
    return Group(table, *(each for each in (examples, harmless) if each.row_count))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _name(hit: Hit) -> Text:
    name = cell(hit.document.title or hit.document.location, limit=60)
    if hit.through:
        name.append(f", through {' → '.join(hit.through)}", style="dim")
    return name if hit.chunk.page is None else name.append(f", p. {hit.chunk.page}")


def _from(hit: Hit, source: str) -> Text:
    """The key or path of the document, unless it is a random id, and the source."""
    location = "" if is_uuid(hit.document.location) else hit.document.location
    both = f"{location} ({source})" if location and source else location or source
    return cell(both, limit=60)


def _parts(parts: Mapping[str, float]) -> str:
    return " ".join(f"{name} {value:+.3f}" for name, value in parts.items())


def excerpt(text: str, query: str) -> str:
    """The text from the sentence with most terms of the query on, or all of it if that is near the start."""
    analyzer = analyzer_for("english")
    wanted = set(analyzer.terms(query))
    best, start = 0, 0
    for begin, end in sentences(text):
        found = len(wanted.intersection(analyzer.terms(text[begin:end])))
        if found > best:
            best, start = found, begin if end > SHOWN else 0
    return f"… {text[start:]}" if start else text
