"""Write docs/reference/settings.md from the settings and their help."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, get_type_hints

from conspectus.settings import PREFIX, Settings

PAGE: Final = Path(__file__).parents[1] / "docs" / "reference" / "settings.md"
HEAD: Final = """\
<!-- Made by scripts/settings_page.py from src/conspectus/settings.py: change that, then run `make docs`. -->
# Settings

Each setting is an environment variable, or under its own name (`chunk_size: 1000`) in the YAML file that
`CONSPECTUS_CONFIG` names; the environment has priority. In a program they are the fields of
`conspectus.settings.Settings`. Numbers are whole numbers. Sizes are in bytes unless the name says otherwise.

    CONSPECTUS_PATH=notes CONSPECTUS_CHUNK_SIZE=1200 conspectus status
"""
SECTIONS: Final = {
    "path": ("Data and index", "[operate](../operate/index.md)"),
    "chunk_size": ("Documents", ""),
    "max_query_characters": ("Search", ""),
    "embedder": ("Models", "[models](../guides/models.md)"),
    "chat_model": ("Chat", "[chat](../guides/chat.md)"),
    "summary_max_attempts": ("Streams, summaries and alerts", "[video](../guides/video.md)"),
    "recent_memory_turns": (
        "Memory and graphs",
        "[memory](../guides/memory.md), [graphs](../guides/graph.md) and [MCP](../guides/mcp.md)",
    ),
    "job_max_attempts": ("Jobs and fetching", "[sync](../guides/sync.md)"),
    "host": ("Server", "[HTTP](http.md), with the answer at each limit"),
    "url": ("Client", ""),
}
"""The first setting of each section, its title, and where there is more about it."""
TAIL: Final = """
## Other variables

| variable | meaning |
| --- | --- |
| `CONTEXT_TOKEN_LIMIT` | tokens of the recent turns of an `AgentContext` ([agent context](../guides/agent-context.md)) |
| `OPENAI_API_KEY`, `AWS_REGION`, … | keys and regions of model providers, by the names of their own libraries ([models](../guides/models.md)) |
| `CONSPECTUS_RERANKER_KEY` | key of a `/rerank` service |
| `PGPASSWORD`, … | variables of PostgreSQL's client library |
| `ORT_DISABLE_TELEMETRY` | telemetry of ONNX Runtime ([security](../operate/security.md#telemetry)) |
| `NO_COLOR` | no colors on the command line |
"""  # noqa: E501


def make_page() -> str:
    """Return the page."""
    return HEAD + "".join(_make_lines()) + TAIL


def _make_lines() -> Iterator[str]:
    hints = get_type_hints(Settings, include_extras=True)
    for name, setting in Settings.__dataclass_fields__.items():
        if name in SECTIONS:
            title, more = SECTIONS[name]
            yield f"\n## {title}\n\n" + (f"More: {more}.\n\n" if more else "")
            yield "| setting | default | meaning |\n| --- | --- | --- |\n"
        default = "empty" if setting.default == "" else f"`{setting.default}`"
        yield f"| `{PREFIX}{name.upper()}` | {default} | {hints[name].__metadata__[0]} |\n"


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
