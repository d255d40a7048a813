"""A file of settings: the names of video programs, our names, and invalid content."""

import os
from dataclasses import fields
from pathlib import Path

import pytest

from conspectus.errors import ConspectusError, InvalidInput, TooLarge, UnreadableFile
from conspectus.settings import Settings

SEED = """\
# config/config.yaml
rag:
  enabled: true
  max_context_tokens: 50_000

  vector_db:
    enabled: {enabled}  # Set to true to use Milvus
    type: milvus
    host: vectors.example
    port: 19531
    collection_name: "vss_poc_context"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def read_settings(file: Path, text: str, **environment: str) -> Settings:
    file.write_text(text, encoding="utf-8")
    return Settings.from_file(file, environment)


def test_a_file_of_a_video_program_is_read_as_it_is(file: Path) -> None:
    settings = read_settings(file, SEED.format(enabled="true"))
    assert (settings.max_context_tokens, settings.index) == (50_000, "milvus")
    assert (settings.milvus_uri, settings.default_collection) == (
        "http://vectors.example:19531",
        "vss_poc_context",
    )


def test_a_database_that_is_off_changes_nothing(file: Path) -> None:
    settings = read_settings(file, SEED.format(enabled="false"))
    assert settings == Settings(max_context_tokens=50_000)
    assert read_settings(file, "rag: {enabled: no, max_context_tokens: 5}") == Settings()
    assert read_settings(file, "rag:\n  vector_db:\n    enabled: on").milvus_uri == "http://localhost:19530"


def test_zilliz_by_its_address(file: Path) -> None:
    text = "rag: {vector_db: {enabled: Yes, uri: 'https://x.zillizcloud.com', token: secret}}"
    settings = read_settings(file, text)
    assert (settings.milvus_uri, settings.milvus_token) == ("https://x.zillizcloud.com", "secret")
    assert "secret" not in repr(settings)


ACCEPTED_WORDS = {
    "log_level": "warning",
    "chat_feedback": "on",
    "chat_form": "tasks",
    "chat_min_similarity": "0.3",
    "chat_events": "text",
    "answer_records": "sampled",
    "user_directory": "open",
    "public_address": "https://context.example.org",
    "oidc_issuer": "https://login.example.org",
    "oidc_audience": "context",
    "oidc_create_users": "on",
    "oidc_client_id": "console",
    "oidc_sign_in_scopes": "openid email",
    "oidc_subject_claim": "oid",
    "scim_subject": "userName",
    "ldap_url": "ldaps://ldap.example.org",
    "ldap_bind_dn": "cn=reader",
    "ldap_bind_password": "a secret",
    "ldap_subject": "objectGUID",
    "ldap_subject_issuer": "oidc",
    "oidc_device_client_id": "cli",
}
"""Words for settings that take only some."""
ISSUER_SETTINGS = {
    "oidc_issuer",
    "oidc_audience",
    "oidc_client_id",
    "oidc_device_client_id",
    "scim_subject",
    "ldap_bind_dn",
    "ldap_bind_password",
    "ldap_subject_issuer",
}
"""Settings that are valid together only."""


@pytest.mark.parametrize("setting", fields(Settings), ids=lambda setting: setting.name)
def test_every_setting_can_stand_in_the_file(file: Path, setting) -> None:
    value = ACCEPTED_WORDS.get(setting.name, "something: else # yes")
    if isinstance(setting.default, int | float):
        value = setting.default + 1
    written = f"{setting.name}: '{value}'" if isinstance(value, str) else f"{setting.name}: {value}"
    if setting.name in ISSUER_SETTINGS:
        written = "\n".join(f"{name}: {ACCEPTED_WORDS[name]}" for name in ISSUER_SETTINGS)
    assert getattr(read_settings(file, written), setting.name) == value


@pytest.mark.parametrize("word", ["on", "off", "yes", "12:30:45", "0x10", "2024-05-01", "1e3", "true"])
def test_words_stay_words(file: Path, word: str) -> None:
    assert read_settings(file, f"chat_use_context: {word}").chat_use_context == word


def test_the_environment_is_above_the_file_and_the_file_above_the_defaults(file: Path) -> None:
    text = "chunk_size: 500\nchunk_overlap: 50\nhost:\nport: ~\n"
    settings = read_settings(file, text, CONSPECTUS_CHUNK_SIZE="700")
    assert (settings.chunk_size, settings.chunk_overlap) == (700, 50)
    assert (settings.host, settings.port) == (Settings().host, Settings().port)
    assert read_settings(file, "rag: {max_context_tokens: 5}\nmax_context_tokens: 6").max_context_tokens == 6


def test_the_environment_names_the_file(file: Path) -> None:
    file.write_text("chunk_size: 500", encoding="utf-8")
    named = {"CONSPECTUS_CONFIG": str(file), "CONSPECTUS_DEFAULT_LANGUAGE": "german"}
    settings = Settings.from_environment(named)
    assert (settings.chunk_size, settings.default_language) == (500, "german")
    assert Settings.from_environment({"CONSPECTUS_CONFIG": ""}) == Settings()
    with pytest.raises(UnreadableFile):
        Settings.from_environment({"CONSPECTUS_CONFIG": str(file) + "x"})


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "---\n", "{}", "~", "\ufeffchunk_size: 2000", "rag:", "rag: {}"]
)
def test_nothing_is_the_defaults(file: Path, text: str) -> None:
    assert read_settings(file, text) == Settings()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("chunksize: 5", "chunksize: is not known; did you mean chunk_size"),
        ("rag: {max_tokens: 5}", "rag.max_tokens: is not known; did you mean max_context_tokens"),
        ("rag: {vector_db: {collection: x}}", "rag.vector_db.collection: .* collection_name"),
        ("rag: {vector_db: {type: faiss}}", "'faiss' is not milvus"),
        ("rag: {vector_db: {port: 123456}}", "is not a port"),
        ("rag: {vector_db: {enabled: maybe}}", "neither true nor false"),
        ("rag: {vector_db: on}", "rag.vector_db: must be a section"),
        ("rag: on", "rag: must be a section"),
        ("rag: {max_context_tokens: many}", "max_context_tokens: 'many' is not a whole number"),
        ("chunk_size: -5", "must not be negative"),
        ("chunk_size: 1.5", "is not a whole number"),
        ("chunk_size: [1]", "chunk_size: is a list"),
        ("host: {a: b}", "host: must be one value"),
        ("host: a\nhost: b", "host: is given twice"),
        ("? [a, b]\n: c", "not plain text"),
        ("rag: " + "{a: " * 20 + "b" + "}" * 20, "nested too deeply"),
    ],
)
def test_a_wrong_value_is_named(file: Path, text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        read_settings(file, text)
    assert str(file) in str(caught.value)


BOMB = "a: &a [x, x]\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(50))


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        "host: &h localhost\nurl: *h",
        "host: !!python/object/apply:os.system ['touch hacked']",
        "host: !!str x",
        "!!map {host: x}",
        "<<: *nothing",
        "- a\n- b",
        "just words",
        "host: a\n---\nhost: b",
        "host: 'open",
        "host: a: b",
        "\thost: a",
        "host: \x00",
        "{" * 50_000,
        "[" * 50_000,
    ],
    ids=range(15),
)
def test_what_is_no_plain_file_of_settings_is_refused(file: Path, text: str) -> None:
    with pytest.raises(ConspectusError) as caught:
        read_settings(file, text)
    assert str(file) in str(caught.value)
    assert not (file.parent / "hacked").exists() and not Path("hacked").exists()


def test_a_file_that_cannot_be_read_says_why(file: Path, tmp_path: Path) -> None:
    for path, words in ((file, "No such file"), (tmp_path, "is not a file"), (Path("a\0b"), "null")):
        with pytest.raises(UnreadableFile, match=words):
            Settings.from_file(path, {})
    file.write_bytes(b"host: \xff\xfe")
    with pytest.raises(UnreadableFile, match="UTF-8"):
        Settings.from_file(file, {})
    file.write_bytes(b"# " + b"x" * 100_000)
    with pytest.raises(TooLarge):
        Settings.from_file(file, {})
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnreadableFile, match="is not a file"):
        Settings.from_file(tmp_path / "pipe", {})
