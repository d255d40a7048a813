"""Every setting and limit, with its default; the only module that reads the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from conspectus.errors import InvalidInput
from conspectus.settings_file import read_settings

LEVELS = ("debug", "info", "warning", "error", "critical")
PREFIX = "CONSPECTUS_"
CONFIG = "CONSPECTUS_CONFIG"
RECORDS = "records.sqlite"
"""The file that makes a folder a data directory."""
TOKEN_LIMIT = "CONTEXT_TOKEN_LIMIT"
QUIET = "ORT_DISABLE_TELEMETRY"


@dataclass(frozen=True, slots=True)
class Settings:
    """What an engine is opened with. Each field can be set as CONSPECTUS_<FIELD> in the environment,
    and under its own name in a YAML file.

    `path` is a folder, or the `postgresql://` URL of a database that many processes share: each has up to
    `database_connections` to it, and what one of them does for all it gives up when it has not been heard of
    for `lease_seconds`. With `row_security` `on` the database itself shows a person's reads nothing that the
    person may not see. `cache` is the folder for what can be fetched or built again.
    `index` is `segments` (files), `pgvector` (in the database), `milvus`, or `auto`: what belongs to `path`.
    `embedder` is `minilm` (shipped), `none` (words only), `static:PATH`, a hosted `vendor:model`, or
    `vectors:N` for vectors that callers hand in.
    `reranker` is `none`, `cohere:MODEL`, `bedrock:MODEL` or the URL of a `/rerank` service (URL#MODEL where
    it has several). A provider has `provider_seconds` for each answer.
    `chat_model` is `none` or `vendor:model` (openai, anthropic, google, bedrock, ollama), with `chat_url`
    the base address of an OpenAI-compatible server to ask instead; it has a window of `chat_window` tokens,
    counted by `chat_tokenizer`, and `chat_seconds` between two pieces of an answer. `chat_inject` is `on`
    or `off`, `chat_form` `passages` or `tasks`, and `chat_events` `all` or `text`. A stream is kept for
    `chat_resume_seconds` after its end, and a model goes on for
    `chat_leave_seconds` after its last reader left. At most `chat_streams` are kept, each with about the
    last `chat_stream_bytes` of its answer.
    A person has at most `max_alerts`; what is new is looked for every `alert_poll_milliseconds`. A webhook is
    sent up to `webhook_attempts` times, has `webhook_seconds` for each answer, and is signed with
    `webhook_key` if there is one.
    The last `memory_turns` turns of a conversation, of at most `memory_tokens`, are its short term. Retention
    is carried out every `retention_minutes`. A page of an export has at most `max_export_lines`.
    `names` is how names are found in passages: `rules` (shipped), `spacy:PATH`, `gliner:PATH` or `chat`; a
    mention means a node from a score of `link_percent` on. A walk has at most `max_hops` and looks at up to
    `max_walked` nodes; `graph_names_most` passages may mention a name that is walked over. An answer to an
    agent has at most `mcp_tokens`.
    A server has `workers` processes. Each has up to `max_connections`, of which one address may have
    `max_address_connections` that have shown no valid key; a request has to begin, with all its headers,
    within `header_seconds`. After `address_failures_per_minute` an address waits `failure_delay_seconds`
    for each refusal. `trusted_proxies` are addresses or networks, separated by commas, whose
    `X-Forwarded-For` is believed. A question has at most `max_question_bytes`, a JSON body
    `max_body_brackets`. One user has at most `max_user_requests`, `max_user_listeners` and
    `max_user_chats` at once. With `background` `off` a process leaves jobs, vectors, names, alerts and
    retention to others. For `drain_seconds` after a server was asked to stop it answers whoever comes.
    Sizes are in bytes unless the name says otherwise. A backup is unpacked up to
    `max_restored_bytes`. `fetch_allow` are names, addresses or networks,
    separated by commas, that may be fetched from although they are not public; `max_requests` are answered
    at once, `max_waiting` more wait, others are turned away, and so are those of a key over its
    `key_requests_per_minute` (0: as many as come); at most `max_listeners` are told of what comes,
    each for `listen_seconds` until it has to ask again; `cors_origins` are separated by commas. `url` and
    `key` are those of a server to ask instead of a folder, which has `answer_seconds` for each answer.
    """

    path: str = "conspectus-data"
    collection: str = "default"
    embedder: str = "minilm"
    embedder_threads: int = 0
    language: str = "english"
    chunk_size: int = 2000
    chunk_overlap: int = 200
    max_file_bytes: int = 50_000_000
    max_unpacked_bytes: int = 200_000_000
    max_document_characters: int = 50_000_000
    max_metadata_bytes: int = 65_536
    max_metadata_depth: int = 16
    max_query_characters: int = 10_000
    max_limit: int = 1_000
    max_context_tokens: int = 100_000
    max_files: int = 1_000_000
    max_folder_depth: int = 64
    busy_seconds: int = 30
    database_connections: int = 8
    lease_seconds: int = 30
    row_security: str = "off"
    cache: str = ""
    tail_chunks: int = 10_000
    max_restored_bytes: int = 1_000_000_000_000

    reranker: str = "none"
    embed_batch: int = 96
    embed_wait_milliseconds: int = 2_000
    embed_attempts: int = 5
    embed_longest_wait_seconds: int = 30
    provider_seconds: int = 60

    chat_model: str = "none"
    chat_url: str = ""
    chat_window: int = 8_192
    chat_tokenizer: str = "o200k_base"
    chat_inject: str = "on"
    chat_form: str = "passages"
    chat_events: str = "all"
    chat_seconds: int = 120
    chat_streams: int = 500
    max_user_chats: int = 100
    chat_stream_bytes: int = 1_000_000
    chat_heartbeat_seconds: int = 15
    chat_resume_seconds: int = 30
    chat_leave_seconds: int = 5
    max_chat_characters: int = 10_000
    max_history_turns: int = 200
    max_thread_chunks: int = 500
    max_chain: int = 100

    index: str = "auto"
    milvus_uri: str = ""
    milvus_token: str = field(default="", repr=False)
    milvus_prefix: str = "conspectus"
    milvus_seconds: int = 30

    summary_attempts: int = 3
    summary_concurrency: int = 4
    max_summary_captions: int = 100_000
    max_alerts: int = 1_000
    alert_poll_milliseconds: int = 200
    webhook_attempts: int = 8
    webhook_seconds: int = 10
    webhook_key: str = field(default="", repr=False)

    memory_turns: int = 10
    memory_tokens: int = 2_000
    retention_minutes: int = 60
    max_export_lines: int = 1_000
    names: str = "rules"
    link_percent: int = 80
    max_hops: int = 5
    max_walked: int = 10_000
    max_graph_batch: int = 10_000
    graph_names_most: int = 200
    mcp_tokens: int = 8_000

    fetch_max_bytes: int = 50_000_000
    fetch_max_redirects: int = 5
    fetch_seconds: int = 30
    fetch_allow: str = ""
    parse_seconds: int = 120
    parse_memory_bytes: int = 2_000_000_000
    job_attempts: int = 3
    job_wait_milliseconds: int = 1_000
    job_workers: int = 4
    job_grace_seconds: int = 30

    host: str = "127.0.0.1"
    port: int = 8642
    workers: int = 1
    background: str = "on"
    drain_seconds: int = 0
    header_seconds: int = 15
    max_connections: int = 2_000
    max_address_connections: int = 1_000
    address_failures_per_minute: int = 60
    failure_delay_seconds: int = 5
    trusted_proxies: str = ""
    max_request_bytes: int = 100_000_000
    max_question_bytes: int = 1_000_000
    max_body_brackets: int = 1_000_000
    max_upload_files: int = 100
    request_seconds: int = 60
    max_requests: int = 64
    max_user_requests: int = 32
    max_waiting: int = 256
    max_listeners: int = 200
    max_user_listeners: int = 50
    key_requests_per_minute: int = 0
    listen_seconds: int = 600
    cors_origins: str = ""
    keep_answers_hours: int = 24
    log_level: str = "info"

    url: str = ""
    key: str = field(default="", repr=False)
    answer_seconds: int = 90
    max_answer_bytes: int = 200_000_000

    def __post_init__(self) -> None:
        """Refuse words that nobody else looks at, or only after there is a log."""
        chosen = {
            "log_level": self.log_level.lower(),
            "chat_form": self.chat_form,
            "chat_events": self.chat_events,
        }
        known = {"log_level": LEVELS, "chat_form": ("passages", "tasks"), "chat_events": ("all", "text")}
        for name, value in chosen.items():
            if value not in known[name]:
                raise InvalidInput(name, f"{getattr(self, name)!r} is none of {', '.join(known[name])}")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "Settings":
        """The defaults with what the environment sets, and before it the file that CONSPECTUS_CONFIG names.

        Raises InvalidInput for a value it cannot read, and for the file what `from_file` raises.
        """
        given = os.environ if environment is None else environment
        file = given.get(CONFIG)
        return cls.from_file(file, given) if file else cls(**_overridden(cls, {}, given))

    @classmethod
    def from_file(cls, path: str | Path, environment: Mapping[str, str] | None = None) -> "Settings":
        """The defaults with what a YAML file sets, and above it the environment.

        Raises UnreadableFile, TooLarge, or InvalidInput for a name that is not known or a value of another
        kind.
        """
        given = os.environ if environment is None else environment
        defaults = {each.name: each.default for each in fields(cls)}
        written = read_settings(Path(path), tuple(defaults))
        values = {name: _read(f"{path}: {name}", word, defaults[name]) for name, word in written.items()}
        return cls(**_overridden(cls, values, given))


def vendor_variable(name: str) -> str | None:
    """What the environment has under a name that a vendor's own library reads; None where it is empty."""
    return os.environ.get(name) or None


def forbid_telemetry() -> None:
    """Have ONNX Runtime, imported after this, report nothing to its maker and leave no id on the machine.

    It looks at the environment once, when it is imported. Who has set the variable has decided otherwise.
    """
    os.environ.setdefault(QUIET, "1")


def context_token_limit(environment: Mapping[str, str] | None = None) -> int | None:
    """What CONTEXT_TOKEN_LIMIT says, the short term of agents' contexts; None where it is not set.

    Raises InvalidInput for what is no whole number.
    """
    given = (os.environ if environment is None else environment).get(TOKEN_LIMIT)
    return int(_read(TOKEN_LIMIT, given, 0)) if given else None


def _overridden(
    cls: type[Settings], values: Mapping[str, Any], environment: Mapping[str, str]
) -> dict[str, Any]:
    """The values, and above them what the environment sets."""
    found = dict(values)
    for each in fields(cls):
        name = PREFIX + each.name.upper()
        if name in environment:
            found[each.name] = _read(name, environment[name], each.default)
    return found


def _read(name: str, text: str, default: object) -> str | int:
    if not isinstance(default, int):
        return text
    try:
        number = int(text)
    except ValueError:
        raise InvalidInput(name, f"{text!r} is not a whole number") from None
    if number < 0:
        raise InvalidInput(name, "must not be negative")
    return number
