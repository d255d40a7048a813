"""Every setting and limit, with its default; the only module that reads the environment."""

import difflib
import math
import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Annotated, Any, Final

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput

LEVELS = ("debug", "info", "warning", "error", "critical")
PUBLIC_ADDRESS: Final = re.compile(r"https?://[^\s/?#@]+/?")
LDAP_ADDRESS: Final = re.compile(r"ldaps?://[^\s/?#@:]+(:\d{1,5})?/?")
ATTRIBUTE: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9-]{0,99}", re.ASCII)
PREFIX = "CONSPECTUS_"
CONFIG = "CONSPECTUS_CONFIG"
OTHER_VARIABLES: Final = frozenset(
    {f"CONSPECTUS_{name}" for name in ("EVAL", "IMAGE", "PUBLISH", "REQUIREMENTS")}
)
"""Variables of tests, images and deployments that are no settings."""
RECORDS = "records.sqlite"
"""The file that makes a folder a data directory."""
TOKEN_LIMIT = "CONTEXT_TOKEN_LIMIT"
PAGE_ROWS: Final = 1_000
QUIET = "ORT_DISABLE_TELEMETRY"


@dataclass(frozen=True, slots=True)
class Settings:
    """What an engine is opened with.

    Each field is the variable CONSPECTUS_<FIELD> of the environment, or a name in a YAML file. Its help is
    the second argument of `Annotated`; `scripts/settings_page.py` makes `docs/reference/settings.md` from it.
    Sizes are in bytes unless the name says otherwise.
    """

    path: Annotated[str, "data directory, or the `postgresql://` URL of a database"] = "conspectus-data"
    default_collection: Annotated[str, "collection of commands and calls that name none"] = "default"
    default_language: Annotated[str, "language of the stemmer for new collections"] = "english"
    index: Annotated[
        str, "`segments`, `pgvector`, `milvus`, or `auto`: segments for a directory, pgvector for a URL"
    ] = "auto"
    tail_chunks: Annotated[int, "`segments`: chunks in memory before they are written to files"] = 10_000
    cache: Annotated[
        str, "directory for downloads and rebuildable files of a URL; empty: `~/.cache/conspectus`"
    ] = ""
    max_restored_bytes: Annotated[int, "maximum unpacked size of a backup"] = 1_000_000_000_000
    lock_timeout_seconds: Annotated[
        int, "maximum wait for the write lock, and for a connection to the database"
    ] = 30
    database_connections: Annotated[
        int, "PostgreSQL connections of a process: half of them for reading, the others for writing"
    ] = 8
    lease_seconds: Annotated[
        int, "time without a heartbeat after which another process takes over a lock"
    ] = 30
    row_security: Annotated[str, "`on`: row-level security of PostgreSQL for reads of users"] = "off"
    milvus_uri: Annotated[str, "address of Milvus; empty: Milvus Lite, one file for one process"] = ""
    milvus_token: Annotated[str, "`user:password` or API key of Milvus"] = field(default="", repr=False)
    milvus_prefix: Annotated[str, "prefix of all names in Milvus"] = "conspectus"
    milvus_timeout_seconds: Annotated[int, "timeout of a request to Milvus"] = 30
    log_level: Annotated[str, "`debug`, `info`, `warning`, `error` or `critical`"] = "info"

    chunk_size: Annotated[
        int, "maximum characters of a chunk; short sections are joined up to half of it"
    ] = 2_000
    chunk_overlap: Annotated[int, "characters that a chunk may repeat of the previous one"] = 200
    max_file_bytes: Annotated[int, "maximum size of a file"] = 50_000_000
    max_unpacked_bytes: Annotated[int, "maximum unpacked size of an archive or compressed file"] = 200_000_000
    max_files: Annotated[int, "maximum files of a directory or archive"] = 1_000_000
    max_folder_depth: Annotated[int, "maximum depth of a directory tree"] = 64
    max_archive_members: Annotated[int, "maximum files inside an archive, mailbox or message"] = 10_000
    max_archive_depth: Annotated[int, "maximum depth of archives and attachments inside each other"] = 4
    max_archive_ratio: Annotated[int, "maximum ratio of a file in an archive to its packed size"] = 200
    max_document_characters: Annotated[int, "maximum characters of a document"] = 50_000_000
    max_metadata_bytes: Annotated[int, "maximum metadata of a document, as JSON"] = 65_536
    max_metadata_depth: Annotated[int, "maximum nesting of metadata"] = 16
    sensitive: Annotated[
        str,
        "secrets and personal data: `CATEGORY=ACTION` or `COLLECTION:CATEGORY=ACTION`, separated by commas",
    ] = ""
    parse_timeout_seconds: Annotated[int, "timeout for reading a PDF, Office file or e-book"] = 120
    parse_max_memory_bytes: Annotated[int, "maximum memory of the process that reads it"] = 2_000_000_000
    ocr_languages: Annotated[
        str, "languages of scans and pictures as Tesseract names them, e.g. `eng+deu`; all that are installed"
    ] = ""
    ocr_data: Annotated[
        str, "folder with `.traineddata` files of Tesseract; that of the installed packages"
    ] = ""
    speech_language: Annotated[
        str, "language of recordings as a code of Whisper, e.g. `de`; that of their first speech"
    ] = ""
    speech_model: Annotated[
        str, "folder with a Whisper model for CTranslate2; that of the installed package"
    ] = ""
    speech_threads: Annotated[int, "processor cores that transcribe a recording"] = 1
    speech_timeout_seconds: Annotated[int, "timeout for transcribing a recording"] = 3_600
    speech_max_memory_bytes: Annotated[int, "maximum memory of the process that does it"] = 3_000_000_000
    max_recording_bytes: Annotated[int, "maximum size of a recording"] = 500_000_000
    max_recording_seconds: Annotated[int, "maximum duration of a recording"] = 14_400

    max_query_characters: Annotated[int, "maximum characters of a query"] = 10_000
    max_limit: Annotated[int, "maximum results of a query, and rows of a page"] = 1_000
    max_window_tokens: Annotated[int, "maximum `max_tokens` of a context window"] = 1_000_000
    max_context_tokens: Annotated[
        int, "maximum window of a `ContextManager` ([video manager](../guides/video-manager.md))"
    ] = 100_000
    max_thread_chunks: Annotated[int, "maximum chunks of a thread that are read for a hit"] = 500
    max_thread_messages: Annotated[int, "maximum messages of a reply chain"] = 100

    embedder: Annotated[
        str,
        "embedding model of new collections: `minilm` (English), `multilingual` (about 100 languages; "
        "`pip install 'conspectus[multilingual]'`), `none` (keywords only), `static:PATH`, `vendor:MODEL`, "
        "or `vectors:N` for vectors of the caller",
    ] = "minilm"
    embedder_threads: Annotated[int, "threads of the built-in embedding model; 0: one for each core"] = 0
    cached_queries: Annotated[
        int, "maximum queries whose vectors the built-in embedding model keeps in memory; 0: none"
    ] = 1_000
    embed_batch_size: Annotated[int, "maximum texts in a request to a hosted embedding model"] = 96
    embed_batch_delay_ms: Annotated[int, "maximum wait of a text for others in its batch"] = 2_000
    embed_max_attempts: Annotated[int, "maximum attempts of a request to a model provider that is busy"] = 5
    embed_max_backoff_seconds: Annotated[int, "maximum pause between two attempts"] = 30
    provider_timeout_seconds: Annotated[int, "timeout of a request to an embedding model or reranker"] = 60
    reranker: Annotated[
        str,
        "`cohere:MODEL`, `bedrock:MODEL`, or the URL of a `/rerank` service (`URL#MODEL` if it has several)",
    ] = "none"

    chat_model: Annotated[
        str, "`vendor:MODEL` that answers chats: `openai`, `anthropic`, `google`, `bedrock` or `ollama`"
    ] = "none"
    chat_base_url: Annotated[str, "base URL of an OpenAI-compatible server"] = ""
    chat_context_tokens: Annotated[int, "context length of the model, query and answer together"] = 8_192
    chat_tokenizer: Annotated[str, "tokenizer of the chat model"] = "o200k_base"
    chat_use_context: Annotated[str, "`off`: no context unless a request asks for it"] = "on"
    chat_feedback: Annotated[str, "`on`: passages that an answer cites count as feedback on its query"] = (
        "off"
    )
    chat_form: Annotated[
        str, "default `format` of the context: `passages`, `tasks`, or `auto`: tasks if only tasks are stored"
    ] = "auto"
    chat_min_similarity: Annotated[
        str, "lowest cosine similarity of a chat's context; empty: 0.25 for passages, none for tasks"
    ] = ""
    chat_events: Annotated[
        str, "default `events` of `/chat`: `all`, or `text` for text and `[DONE]` only"
    ] = "all"
    chat_timeout_seconds: Annotated[
        int, "timeout for the first part of an answer, and for each later part"
    ] = 120
    max_chat_characters: Annotated[int, "maximum characters of a message"] = 10_000
    max_answer_characters: Annotated[
        int, "maximum characters of an answer of the chat model, which is ended there"
    ] = 1_000_000
    max_history_turns: Annotated[int, "maximum earlier turns"] = 200
    max_chat_streams: Annotated[int, "maximum answers that a process makes and keeps"] = 500
    max_user_chats: Annotated[int, "maximum concurrent chats of a user"] = 100
    chat_replay_bytes: Annotated[int, "maximum size of the end of an answer that is kept for replay"] = (
        1_000_000
    )
    chat_heartbeat_seconds: Annotated[
        int, "time without an event before a comment is sent, to subscribers too"
    ] = 15
    chat_resume_seconds: Annotated[int, "time that an answer is kept after its end"] = 30
    chat_disconnect_grace_seconds: Annotated[
        int, "time that the model continues after its last reader left"
    ] = 5

    answer_records: Annotated[
        str, "windows, recalls and chats that are kept as given: `off`, `sampled` or `all`"
    ] = "off"
    answer_sample_percent: Annotated[int, "`sampled`: share of them that is kept, in percent"] = 10
    answer_days: Annotated[int, "days that an answer record is kept"] = 30
    max_answers: Annotated[int, "maximum answer records of a store; the oldest are deleted"] = 10_000
    max_answers_bytes: Annotated[int, "maximum size of all answer records of a store"] = 1_000_000_000
    max_answer_bytes: Annotated[
        int, "maximum size of an answer record; a larger one loses its prompt, candidates and answer"
    ] = 500_000

    summary_max_attempts: Annotated[int, "maximum attempts to summarize a batch"] = 3
    summary_concurrency: Annotated[int, "batches that a process summarizes at once"] = 4
    max_summary_captions: Annotated[int, "maximum captions of a summary"] = 100_000
    max_alerts: Annotated[int, "maximum alerts of a user"] = 1_000
    alert_poll_interval_ms: Annotated[int, "interval between two checks for new captions and events"] = 200
    webhook_max_attempts: Annotated[int, "maximum attempts to send a webhook"] = 8
    webhook_timeout_seconds: Annotated[int, "timeout of a webhook request"] = 10
    webhook_key: Annotated[str, "key that signs webhooks"] = field(default="", repr=False)

    recent_memory_turns: Annotated[int, "maximum recent turns of a conversation"] = 10
    recent_memory_tokens: Annotated[int, "maximum tokens of the recent turns"] = 2_000
    retention_interval_minutes: Annotated[int, "interval between two runs of retention; 0: never"] = 60
    fact_collections: Annotated[
        str, "collections whose new memories the chat model reads for facts, separated by commas"
    ] = ""
    fact_interval_minutes: Annotated[int, "interval between two such runs; 0: never"] = 10
    max_fact_tokens: Annotated[int, "maximum tokens of a run, prompts and answers together"] = 200_000
    max_export_lines: Annotated[int, "maximum lines of an export page"] = 1_000
    entity_extractor: Annotated[str, "entity extraction: `rules`, `spacy:PATH`, `gliner:PATH` or `chat`"] = (
        "rules"
    )
    entity_link_min_percent: Annotated[int, "minimum score for linking a mention to a node"] = 80
    max_hops: Annotated[int, "maximum length of a traversal"] = 5
    max_traversal_nodes: Annotated[int, "maximum nodes that a traversal reads"] = 10_000
    max_graph_batch: Annotated[int, "maximum nodes or edges of a call"] = 10_000
    max_entity_mentions: Annotated[int, "maximum mentions of an entity that is traversed"] = 200
    mcp_max_tokens: Annotated[int, "maximum tokens of a tool result"] = 8_000
    mcp_operations: Annotated[
        str, "operations that models are offered beside the usual ones, separated by commas"
    ] = ""

    job_max_attempts: Annotated[int, "maximum attempts of a job"] = 3
    job_backoff_ms: Annotated[int, "pause before the second attempt, doubled for each later one"] = 1_000
    job_workers: Annotated[int, "concurrent jobs of a process"] = 4
    job_grace_seconds: Annotated[int, "time that requests and jobs have to end when a process is stopped"] = (
        30
    )
    run_background_jobs: Annotated[
        str, "`off`: jobs, embedding, entity extraction, alerts and retention run in other processes"
    ] = "on"
    max_fetch_bytes: Annotated[int, "maximum size of a page"] = 50_000_000
    max_fetch_redirects: Annotated[int, "maximum redirects of a page"] = 5
    fetch_timeout_seconds: Annotated[int, "timeout for fetching a page, redirects included"] = 30
    fetch_allowed_networks: Annotated[
        str,
        "names, addresses or networks that may be fetched from although they are not public, separated "
        "by commas",
    ] = ""
    secret_key: Annotated[
        str,
        "key that seals credentials of connections: 32 random bytes in URL-safe Base64; several, newest "
        "first, separated by commas",
    ] = field(default="", repr=False)
    secret_key_file: Annotated[str, "file with such a key in each line, in place of `secret_key`"] = field(
        default="", repr=False
    )

    sync_requests_per_second: Annotated[
        float, "requests per second that a sync sends to its remote, after a burst of two seconds; 0: any"
    ] = 0.0
    sync_max_requests: Annotated[int, "requests of a sync to its remote, after which it stops"] = 1_000_000
    mirrored_hide_hours: Annotated[
        int, "hours after its last successful sync when what a connection mirrors is hidden; 0: never"
    ] = 24
    verify_max_documents: Annotated[
        int, "documents that a search or a page of a list checks at the remote of a connection with `verify`"
    ] = 20
    verify_timeout_seconds: Annotated[
        float, "seconds until a remote has said what a person may open; later, nothing of it is shown"
    ] = 2.0
    verify_cache_seconds: Annotated[
        float, "seconds for which what a remote said of a person and a document holds; 0: asked each time"
    ] = 5.0
    access_lost_keep_hours: Annotated[
        int, "hours that documents stay readable after their connection was refused access; 0: none"
    ] = 0
    unreachable_hide_hours: Annotated[
        int, "hours without an answer after which documents of a connection are hidden; 0: never"
    ] = 0

    host: Annotated[str, "address to listen on; `0.0.0.0` in the image"] = "127.0.0.1"
    port: Annotated[int, "port to listen on"] = 8_642
    public_address: Annotated[
        str,
        "address at which people reach the server, as `https://context.example.org`, for links to it; empty: "
        "`http://localhost` with the port",
    ] = ""
    workers: Annotated[int, "processes of `serve`, at most 256"] = 1
    drain_seconds: Annotated[int, "time that a stopping server, no longer ready, still accepts requests"] = 0
    header_seconds: Annotated[
        int, "maximum wait for the headers of the next request on a connection; 0: no limit"
    ] = 15
    max_connections: Annotated[int, "maximum open connections of a process"] = 2_000
    max_address_connections: Annotated[
        int, "maximum open connections of an address without a valid key; 0: no limit"
    ] = 1_000
    address_failures_per_minute: Annotated[
        int, "requests of an address without a valid key before they are refused with 429; 0: no limit"
    ] = 60
    failure_delay_seconds: Annotated[int, "delay of such a refusal"] = 5
    trusted_proxies: Annotated[
        str, "addresses or networks of proxies whose `X-Forwarded-For` is trusted, separated by commas"
    ] = ""
    max_request_bytes: Annotated[int, "maximum body of a request"] = 100_000_000
    max_question_bytes: Annotated[int, "maximum body of a request that only reads"] = 1_000_000
    max_user_body_bytes: Annotated[
        int, "maximum bytes of the JSON bodies of a user in the memory of a process; 0: no limit"
    ] = 200_000_000
    max_body_values: Annotated[
        int, "maximum values of a JSON body over 64 kB: its commas, `{` and `[` outside of texts"
    ] = 2_000_000
    max_upload_files: Annotated[int, "maximum files of an upload"] = 100
    request_timeout_seconds: Annotated[
        int, "timeout for receiving a request, and for answering it; 0: no limit"
    ] = 60
    max_concurrent_requests: Annotated[int, "maximum concurrent requests of a process"] = 64
    max_user_requests: Annotated[int, "maximum concurrent requests of a user in a process; 0: no limit"] = 32
    max_queued_requests: Annotated[int, "maximum waiting requests of a process; further ones get 503"] = 256
    session_hours: Annotated[int, "hours after which a login of the console ends"] = 168
    session_idle_minutes: Annotated[
        int, "minutes without a request after which a login of the console ends"
    ] = 720
    invitation_hours: Annotated[int, "hours after which an invitation expires, if no time is given"] = 72
    key_days: Annotated[
        int, "days after which a new API key expires if no time is given; 0: never; the owner's never do"
    ] = 365
    user_directory: Annotated[
        str,
        "`shared`: people may name only users and groups with whom they share a group, a collection or a "
        "source, and anybody by id; `open`: everybody by name",
    ] = "shared"
    oidc_issuer: Annotated[
        str,
        "issuer whose tokens sign people in, as its metadata name it; empty: tokens of none",
    ] = ""
    oidc_audience: Annotated[
        str, "audiences of tokens for this server, one of which a token must have, separated by commas"
    ] = ""
    oidc_scopes: Annotated[
        str, "what scopes of tokens allow: `SCOPE=RIGHT`, separated by commas; the scope `*` is that of all"
    ] = "read=read,write=write,admin=admin"
    oidc_subject_claim: Annotated[
        str,
        "claim that says whose token it is: `sub`, or `oid` of Microsoft Entra ID; identities by another "
        "claim lead to nobody",
    ] = "sub"
    oidc_groups_claim: Annotated[str, "claim with the groups of a person; empty: none"] = "groups"
    oidc_name_claim: Annotated[str, "claim with the name of a new user"] = "preferred_username"
    oidc_create_users: Annotated[str, "`on`: a valid token of an unknown person creates a user"] = "off"
    oidc_algorithms: Annotated[str, "algorithms of signatures, separated by commas"] = (
        "RS256,PS256,ES256,EdDSA"
    )
    oidc_client_id: Annotated[
        str, "id of this server at the issuer, for sign-in in the console; empty: no sign-in there"
    ] = ""
    oidc_client_secret: Annotated[
        str, "secret of this server at the issuer; empty: a public client, protected by PKCE alone"
    ] = field(default="", repr=False)
    oidc_name: Annotated[str, "name of the issuer on the button of the console"] = "single sign-on"
    oidc_sign_in_scopes: Annotated[
        str, "scopes that a sign-in in the console asks for, separated by spaces"
    ] = "openid profile"
    oidc_device_client_id: Annotated[
        str,
        "id of the command line at the issuer, a public client with the device flow; empty: none is named",
    ] = ""
    oidc_session_hours: Annotated[int, "hours after which a sign-in in the console ends"] = 12
    oidc_clock_skew_seconds: Annotated[int, "difference of clocks that is tolerated, at most 60"] = 60
    oidc_stale_key_hours: Annotated[int, "hours that keys of an issuer that is away are used"] = 24
    scim_token: Annotated[
        str,
        "token with which the identity provider manages users and groups at `/scim/v2`, of at least 32 "
        "characters; two, separated by a comma, while it is replaced; empty: no SCIM",
    ] = field(default="", repr=False)
    scim_subject: Annotated[
        str,
        "attribute of a SCIM user that is the subject of its tokens: `externalId` or `userName`; `none`: an "
        "administrator maps identities",
    ] = "none"
    scim_max_results: Annotated[int, "maximum users or groups of a SCIM answer"] = 200
    scim_max_bytes: Annotated[int, "maximum body of a SCIM request"] = 1_000_000
    ldap_url: Annotated[
        str,
        "directory whose groups give memberships: `ldaps://HOST`, or `ldap://HOST`, where StartTLS switches "
        "TLS on; empty: none",
    ] = ""
    ldap_bind_dn: Annotated[str, "name with which this server reads it; empty: anonymous"] = ""
    ldap_bind_password: Annotated[str, "password of that name"] = field(default="", repr=False)
    ldap_ca_file: Annotated[
        str, "PEM file with the authorities of the directory's certificate; empty: those of the system"
    ] = ""
    ldap_subject: Annotated[str, "attribute of a person that never changes, such as `objectGUID`"] = (
        "entryUUID"
    )
    ldap_subject_issuer: Annotated[
        str,
        "whose subject it is: `ldap`: an administrator maps each; `oidc`: it is the subject of the tokens of "
        "`oidc_issuer`",
    ] = "ldap"
    ldap_interval_hours: Annotated[int, "hours between two readings of it; 0: by command only"] = 24
    ldap_timeout_seconds: Annotated[int, "timeout of a request to the directory"] = 10
    ldap_max_nesting: Annotated[int, "maximum depth of groups in groups; 0: their members are no members"] = 5
    ldap_max_members: Annotated[int, "maximum members of all mapped groups; with more, none change"] = 50_000
    key_requests_per_minute: Annotated[
        int, "maximum requests of an API key per minute over all processes; 0: no limit"
    ] = 0
    max_subscribers: Annotated[int, "maximum subscribers of a process"] = 200
    max_user_subscribers: Annotated[int, "maximum subscriptions of a user"] = 50
    subscription_seconds: Annotated[int, "maximum duration of a subscription; 0: no limit"] = 600
    idempotency_hours: Annotated[int, "time that the answer to an `Idempotency-Key` is kept"] = 24
    cors_origins: Annotated[str, "origins of web pages that may read answers, separated by commas"] = ""

    opentelemetry: Annotated[
        str, "`on`: traces and metrics by OTLP, to where `OTEL_EXPORTER_OTLP_ENDPOINT` says"
    ] = "off"
    opentelemetry_content: Annotated[str, "`on`: traces have the texts of queries"] = "off"
    url: Annotated[str, "URL of a server to use instead of a data directory"] = ""
    api_key: Annotated[str, "API key for that server"] = field(default="", repr=False)
    login_file: Annotated[
        str, "file with the logins of `conspectus login`, which are used where there is no API key"
    ] = "~/.config/conspectus/logins.json"
    client_timeout_seconds: Annotated[int, "timeout of a request to that server"] = 90
    max_response_bytes: Annotated[int, "maximum size of a response"] = 200_000_000

    def __post_init__(self) -> None:
        """Refuse words that nobody else looks at, or only after there is a log."""
        words = {
            "log_level": self.log_level.lower(),
            "chat_feedback": self.chat_feedback,
            "chat_form": self.chat_form,
            "chat_events": self.chat_events,
            "answer_records": self.answer_records,
            "user_directory": self.user_directory,
            "oidc_create_users": self.oidc_create_users,
            "oidc_subject_claim": self.oidc_subject_claim,
            "scim_subject": self.scim_subject,
            "ldap_subject_issuer": self.ldap_subject_issuer,
        }
        allowed = {
            "log_level": LEVELS,
            "chat_feedback": ("on", "off"),
            "chat_form": ("auto", "passages", "tasks"),
            "chat_events": ("all", "text"),
            "answer_records": ("off", "sampled", "all"),
            "user_directory": ("shared", "open"),
            "oidc_create_users": ("on", "off"),
            "oidc_subject_claim": ("sub", "oid"),
            "scim_subject": ("none", "externalId", "userName"),
            "ldap_subject_issuer": ("ldap", "oidc"),
        }
        for name, value in words.items():
            if value not in allowed[name]:
                raise InvalidInput(name, f"{getattr(self, name)!r} must be one of {', '.join(allowed[name])}")
        if self.chat_min_similarity:
            _similarity("chat_min_similarity", self.chat_min_similarity)
        self._check_sign_in()
        self._check_directory()
        self._check_verification()
        if self.secret_key and self.secret_key_file:
            raise InvalidInput("secret_key_file", "excludes secret_key: set one of them")
        if self.public_address and not PUBLIC_ADDRESS.fullmatch(self.public_address):
            raise InvalidInput("public_address", "must be `http://` or `https://` with a host, and no path")

    def _check_sign_in(self) -> None:
        """Refuse settings with which nobody could sign in."""
        if bool(self.oidc_issuer) != bool(self.oidc_audience.strip(", ")):
            raise InvalidInput("oidc_audience", "goes with oidc_issuer: set both, or neither")
        for name in ("oidc_client_id", "oidc_device_client_id"):
            if getattr(self, name) and not self.oidc_issuer:
                raise InvalidInput(name, "needs oidc_issuer")
        if self.scim_subject != "none" and not self.oidc_issuer:
            raise InvalidInput("scim_subject", "needs oidc_issuer, whose tokens have the subject")
        if "openid" not in self.oidc_sign_in_scopes.split():
            raise InvalidInput("oidc_sign_in_scopes", "must have the scope openid")

    def _check_directory(self) -> None:
        """Refuse settings with which passwords or memberships would be unsafe."""
        if self.ldap_url and not LDAP_ADDRESS.fullmatch(self.ldap_url):
            raise InvalidInput("ldap_url", "must be `ldaps://HOST` or `ldap://HOST`, with a port if needed")
        if bool(self.ldap_bind_dn) != bool(self.ldap_bind_password):
            raise InvalidInput("ldap_bind_password", "goes with ldap_bind_dn: set both, or neither")
        if self.ldap_subject_issuer == "oidc" and not self.oidc_issuer:
            raise InvalidInput("ldap_subject_issuer", "needs oidc_issuer, whose tokens have the subject")
        if not ATTRIBUTE.fullmatch(self.ldap_subject):
            raise InvalidInput("ldap_subject", "must be the name of an attribute, such as entryUUID")

    def _check_verification(self) -> None:
        """Refuse limits with which no remote could be asked, or with which a request would wait for long."""
        if not 1 <= self.verify_max_documents <= 200:
            raise InvalidInput("verify_max_documents", "must be from 1 to 200")
        if not 0 < self.verify_timeout_seconds <= 60:
            raise InvalidInput("verify_timeout_seconds", "must be above 0, and at most 60")
        if not 0 <= self.verify_cache_seconds <= 300:
            raise InvalidInput("verify_cache_seconds", "must be from 0 to 300")

    @property
    def own_address(self) -> str:
        """The address of the server in links, without a slash at its end."""
        return self.public_address.rstrip("/") or f"http://localhost:{self.port}"

    @property
    def chat_floor(self) -> float | None:
        """The lowest similarity of the context of chats; None if the setting is empty."""
        return (
            _similarity("chat_min_similarity", self.chat_min_similarity) if self.chat_min_similarity else None
        )

    @property
    def max_page_rows(self) -> int:
        """Most rows of a page: `max_limit`, and never fewer than programs of this package read at once."""
        return max(self.max_limit, PAGE_ROWS)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "Settings":
        """The defaults with what the environment sets, and before it the file that CONSPECTUS_CONFIG names.

        Raises InvalidInput for a value it cannot read, and for the file what `from_file` raises. Warns with
        UnknownSetting of a variable `CONSPECTUS_…` that is no setting.
        """
        variables = os.environ if environment is None else environment
        for unknown in unknown_variables(variables):
            warnings.warn(unknown, UnknownSetting, stacklevel=2)
        file = variables.get(CONFIG)
        return cls.from_file(file, variables) if file else cls(**_override_by_environment(cls, {}, variables))

    @classmethod
    def from_file(cls, path: str | Path, environment: Mapping[str, str] | None = None) -> "Settings":
        """The defaults with what a YAML file sets, and above it the environment.

        Raises UnreadableFile, TooLarge, or InvalidInput for a name that is not known or a value of another
        kind.
        """
        from conspectus.settings_file import read_settings

        variables = os.environ if environment is None else environment
        defaults = {setting.name: setting.default for setting in fields(cls)}
        written = read_settings(Path(path), tuple(defaults))
        values = {name: _read(f"{path}: {name}", word, defaults[name]) for name, word in written.items()}
        return cls(**_override_by_environment(cls, values, variables))


class UnknownSetting(UserWarning):
    """A variable of the environment has the form of a setting, and is none."""


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Return a sentence for each variable `CONSPECTUS_…` that is no setting, with the nearest name."""
    names = {PREFIX + setting.name.upper() for setting in fields(Settings)} | {CONFIG}
    sentences = []
    for variable in sorted(environment):
        if variable.startswith(PREFIX) and variable not in names | OTHER_VARIABLES:
            name = variable.removeprefix(PREFIX)
            nearest = difflib.get_close_matches(name, sorted(own.removeprefix(PREFIX) for own in names), 1)
            advice = f"did you mean {PREFIX}{nearest[0]}?" if nearest else "see the reference of settings"
            sentences.append(f"{variable} is not a setting and has no effect; {advice}")
    return sentences


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
    limit = (os.environ if environment is None else environment).get(TOKEN_LIMIT)
    return int(_read(TOKEN_LIMIT, limit, 0)) if limit else None


def _override_by_environment(
    cls: type[Settings], values: Mapping[str, Any], environment: Mapping[str, str]
) -> dict[str, Any]:
    """The values, and above them what the environment sets."""
    overridden = dict(values)
    for setting in fields(cls):
        name = PREFIX + setting.name.upper()
        if name in environment:
            overridden[setting.name] = _read(name, environment[name], setting.default)
    return overridden


def _similarity(name: str, text: str) -> float:
    try:
        similarity = float(text)
    except ValueError:
        raise InvalidInput(name, f"{text!r} is not a number") from None
    if not -1.0 <= similarity <= 1.0:
        raise InvalidInput(name, f"{text!r} must be from -1 to 1")
    return similarity


def _read(name: str, text: str, default: object) -> str | int | float:
    """Return a text as a value of the type of the default. Raises InvalidInput for a wrong number."""
    if not isinstance(default, int | float):
        return text
    kind, expected = (int, "a whole number") if isinstance(default, int) else (float, "a number")
    try:
        number = kind(text)
    except ValueError:
        raise InvalidInput(name, f"{text!r} is not {expected}") from None
    if not math.isfinite(number):
        raise InvalidInput(name, f"{text!r} is not {expected}")
    if number < 0:
        raise InvalidInput(name, "must not be negative")
    return number
