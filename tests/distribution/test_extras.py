"""The extras: `all` has them, the docs list them, and without one a feature says which it needs."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from conspectus.cli.maintenance import FEATURES
from conspectus.errors import MissingExtra, optional

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
LEFT_OUT = {"all", "audio", "connectors", "gliner", "google-adk", "multilingual", "testing"}
LIBRARIES = (
    *("dbos", "jsonschema_rs", "mcp", "mcp_types", "model2vec", "psycopg", "pydantic_ai"),
    *("faster_whisper", "networkx", "oxmsg", "pymilvus", "spacy"),
)
WITHOUT = f"import sys\nsys.modules.update(dict.fromkeys({LIBRARIES!r}))\n"
FIRST = """
import conspectus
with conspectus.open("data") as engine:
    engine.add([conspectus.NewDocument("A release is deployed on Tuesdays.")])
    print(engine.window("when is a release deployed?", 200).text)
    print(engine.tokenizer()("a release"))
"""
COMMAND = """
from conspectus.cli.entry import main
sys.argv = ["conspectus", "--data-dir", "data", *{arguments!r}]
main()
"""
UPLOAD = """
import json, pathlib, conspectus
from conspectus.model.jobs import Upload
with conspectus.open("data", settings=conspectus.Settings(embedder="none")) as engine:
    archive = Upload("pack.zip", pathlib.Path("pack.zip").read_bytes())
    job = engine.jobs.ingest_files([archive, Upload("talk.wav", b"RIFF")])
    print(json.dumps(engine.jobs.wait(job.id, timeout=60).result))
"""


def run_without_extras(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A program in a Python without the libraries of extras."""
    command = [sys.executable, "-c", WITHOUT + program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_all_installs_every_extra_but_those_left_out() -> None:
    named = [
        name for requirement in EXTRAS["all"] for name in re.findall(r"[\w-]+", requirement.partition("[")[2])
    ]
    assert sorted(named) == sorted(set(EXTRAS) - LEFT_OUT)


def test_every_extra_is_documented() -> None:
    page = (ROOT / "docs" / "get-started" / "install.md").read_text("utf-8")
    assert set(re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE)) == set(EXTRAS)


def test_the_first_program_needs_no_extra(tmp_path: Path) -> None:
    done = run_without_extras(FIRST, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "deployed on Tuesdays" in done.stdout
    assert done.stdout.endswith("\n2\n")


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [(["mcp"], "mcp"), (["mcp", "--http", "--port", "0"], "mcp")],
)
def test_a_command_without_its_extra_names_it(arguments: list[str], extra: str, tmp_path: Path) -> None:
    done = run_without_extras(COMMAND.format(arguments=arguments), tmp_path)
    assert done.returncode == 1
    assert done.stderr == f"error: this needs mcp: pip install 'conspectus[{extra}]'\n"


def test_a_store_on_a_server_without_its_extra_names_it(tmp_path: Path) -> None:
    program = "import conspectus\nconspectus.open('postgresql://localhost:1/none').__enter__()"
    done = run_without_extras(program, tmp_path)
    assert "MissingExtra: this needs psycopg: pip install 'conspectus[postgresql]'" in done.stderr


def test_a_schema_of_summaries_without_its_extra_names_it(tmp_path: Path) -> None:
    program = "from conspectus.streams.json_schema_output import JsonSchemaOutput\nJsonSchemaOutput({})"
    done = run_without_extras(program, tmp_path)
    assert "MissingExtra: this needs jsonschema-rs: pip install 'conspectus[json-schema]'" in done.stderr


def test_a_message_of_outlook_without_its_extra_names_it(tmp_path: Path) -> None:
    program = "from conspectus.sources.files.outlook import read_message\nread_message(b'')"
    done = run_without_extras(program, tmp_path)
    assert "Unsupported: this needs python-oxmsg: pip install 'conspectus[outlook]'" in done.stderr


@pytest.mark.parametrize("path", ["talks", "talks/talk.mp3"])
def test_a_recording_without_its_extra_names_it(path: str, tmp_path: Path) -> None:
    (tmp_path / "talks").mkdir()
    (tmp_path / "talks" / "talk.mp3").write_bytes(b"ID3")
    done = run_without_extras(COMMAND.format(arguments=["--json", "add", path]), tmp_path)
    report = json.loads(done.stdout)
    reason = "a recording, which the extra `audio` transcribes: pip install 'conspectus[audio]'"
    if path == "talks":
        assert report["skipped_files"] == {"talk.mp3": reason}
    else:
        [failure] = report["failures"]
        assert failure["code"] == "unsupported_content" and reason in failure["reason"]


def test_an_upload_skips_a_recording_in_an_archive_without_the_extra_and_fails_for_one_alone(
    tmp_path: Path,
) -> None:
    with zipfile.ZipFile(tmp_path / "pack.zip", "w") as archive:
        archive.writestr("call.mp3", b"ID3")
        archive.writestr("note.md", "# Note")
    done = run_without_extras(UPLOAD, tmp_path)
    uploaded = json.loads(done.stdout)
    assert uploaded["skipped"] == 1
    assert "the extra `audio`" in uploaded["skipped_files"]["pack.zip/call.mp3"]
    [failure] = uploaded["failures"]
    assert (failure["name"], failure["code"]) == ("talk.wav", "unsupported_content")


def test_graphml_without_its_extra_names_it(tmp_path: Path) -> None:
    program = "from conspectus.graph.graphml import to_graphml\nto_graphml('people', [], [])"
    done = run_without_extras(program, tmp_path)
    assert "MissingExtra: this needs networkx: pip install 'conspectus[graphml]'" in done.stderr


def test_what_is_installed_is_imported() -> None:
    assert optional("json", "none", "json").dumps({}) == "{}"
    with pytest.raises(MissingExtra) as missing:
        optional("nothing_here", "some", "nothing-here")
    assert (missing.value.extra, missing.value.package) == ("some", "nothing-here")


def test_the_command_describes_every_extra() -> None:
    assert set(FEATURES) == set(EXTRAS) - {"all"}


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_lists_what_is_installed(as_json: bool, tmp_path: Path) -> None:
    arguments = ["version", "--verbose", *(["--json"] if as_json else [])]
    done = run_without_extras(COMMAND.format(arguments=arguments), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "data").exists()
    if as_json:
        features = {feature["extra"]: feature for feature in json.loads(done.stdout)["features"]}
        assert features["mcp"] == {"extra": "mcp", "feature": "MCP server", "installed": True, "missing": []}
        assert features["gliner"]["missing"] == ["gliner"]
    else:
        assert re.search(r"MCP server +mcp +yes", done.stdout)
        assert re.search(r"GLiNER +gliner +no +gliner", done.stdout)
