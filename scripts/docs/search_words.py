"""What people type into the search of the site, and the page that answers it.

Each word becomes an entry of the index of its page, which the search of Sphinx ranks before all other hits.
"""

import re
from collections.abc import Sequence
from typing import Final

from sphinx.application import Sphinx

SEARCH_WORDS: Final[dict[str, tuple[str, ...]]] = {
    "concepts/permissions": ("access control", "rbac", "acl", "rename collection"),
    "concepts/scores": (
        "ranking",
        "relevance score",
        "confidence",
        "min_confidence",
        "languages",
        "german",
        "hybrid search",
        "keyword search",
        "vector search",
    ),
    "concepts/sources": ("chunk size", "chunking", "splitting text"),
    "concepts/trust": ("prompt injection", "quarantine"),
    "concepts/window": (
        "token budget",
        "max_tokens",
        "citations",
        "trace",
        "missing passage",
        "prompt caching",
        "explain",
    ),
    "get-started/install": (
        "requirements",
        "windows",
        "macos",
        "alpine",
        "extras",
        "install size",
        "python versions",
        "python version",
    ),
    "get-started/your-files": ("add folder", "add files"),
    "guides/answers": ("answer log", "history of answers"),
    "guides/chat": ("streaming", "server-sent events", "rag chat"),
    "guides/coding-agents": ("hooks", "codex", "claude code hooks"),
    "guides/connect-clients": ("chatgpt", "cursor", "vs code", "claude desktop"),
    "guides/connector-redmine": ("jira", "issue tracker", "tickets"),
    "guides/connector-s3": ("bucket", "minio"),
    "guides/connector-webdav": ("nextcloud", "cloud folder", "google drive", "sharepoint"),
    "guides/documents": (
        "delete document",
        "delete documents",
        "metadata filter",
        "filter",
        "filters",
        "web pages",
        "export documents",
        "source code",
        "bulk import",
    ),
    "guides/evaluation": ("ndcg", "recall", "quality"),
    "guides/files-audio": ("transcription", "whisper", "speech to text"),
    "guides/files-mail": ("attachments", "email", "outlook"),
    "guides/files-pdf": ("pdf tables",),
    "guides/files-scans": ("ocr", "tesseract", "scanned pdf"),
    "guides/files-spreadsheets": ("excel", "xlsx"),
    "guides/files-word": ("docx",),
    "guides/frameworks": ("langchain", "langgraph", "llamaindex", "haystack", "crewai"),
    "guides/graph": ("knowledge graph", "entities", "neighbors"),
    "guides/mcp": ("mcp", "mcp server", "model context protocol"),
    "guides/memory": (
        "agent memory",
        "forget memory",
        "delete memory",
        "retention",
        "export memories",
        "facts",
    ),
    "guides/models": (
        "embedding model",
        "ollama",
        "reranker",
        "min_similarity",
        "multilingual",
        "openai",
        "change embedding model",
        "embedding dimensions",
        "vector size",
    ),
    "guides/moving-in": ("import mem0", "migrate from mem0", "import chroma", "import qdrant"),
    "guides/openai-proxy": ("openai compatible", "chat completions", "proxy"),
    "guides/permissions": ("api key", "api keys", "roles", "users and groups", "audit log", "invitation"),
    "guides/sync": ("git sync", "mediawiki", "confluence", "sync wiki", "connectors"),
    "guides/team-chat": ("slack", "slack export", "discord", "irc", "thread", "threads"),
    "guides/typescript": ("javascript", "node", "typescript client"),
    "guides/video": ("webhook", "webhooks", "alerts", "captions"),
    "operate/backup": ("restore", "migrate to postgresql", "move data"),
    "operate/monitoring": (
        "prometheus metrics",
        "opentelemetry",
        "logs",
        "grafana",
        "health check",
        "outage",
        "failed jobs",
        "jobs failed",
    ),
    "operate/one-folder": (
        "docker",
        "container",
        "purge",
        "gdpr erase",
        "erase data",
        "gdpr",
        "read-only",
        "read only",
    ),
    "operate/postgresql": ("kubernetes", "docker compose", "workers", "high availability", "pgvector"),
    "operate/scim": ("scim", "provisioning", "deprovisioning", "delete user"),
    "operate/security": (
        "tls",
        "https",
        "pii",
        "masking",
        "row security",
        "rotate keys",
        "nginx",
        "reverse proxy",
        "cors",
    ),
    "operate/sign-in": ("sso", "single sign-on", "oidc", "oauth", "login", "keycloak", "entra id"),
    "operate/sizing": ("memory usage", "capacity", "hardware", "how many documents"),
    "operate/upgrade": ("migration", "new version", "rollback"),
    "reference/settings": ("environment variables", "configuration", "rate limit", "rate limits", "timeouts"),
}
TITLE: Final = re.compile(r"^(# .+\n)", re.MULTILINE)


def insert_search_words(text: str, words: Sequence[str]) -> str:
    """Return a page in Markdown with its words as main entries of the index, right below its title."""
    entries = ", ".join(f"! {word}" for word in words)
    return TITLE.sub(rf"\1\n```{{index}} {entries}\n```\n", text, count=1)


def connect(app: Sphinx) -> None:
    """Insert the words when a page is read, so that no other text of the site has them."""
    app.connect("source-read", _insert)


def _insert(_: Sphinx, page: str, source: list[str]) -> None:
    if page in SEARCH_WORDS:
        source[0] = insert_search_words(source[0], SEARCH_WORDS[page])
