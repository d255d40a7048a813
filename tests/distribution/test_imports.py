"""What a program loads: no more than what it uses."""

import subprocess
import sys
from pathlib import Path

import pytest

import conspectus
from conspectus.operations.operation import SERVICES

HEAVY = {
    *("alembic", "dbos", "faiss", "fastapi", "httpx", "lxml", "mcp", "mcp_types", "numpy", "onnxruntime"),
    *("pydantic", "rich.progress", "sqlalchemy", "sqlalchemy.dialects.postgresql", "structlog", "tokenizers"),
    *("typer", "uvicorn", "yaml"),
}
LOADED = "import sys\nprint(*sys.modules)"
REMOTE = """
import asyncio, conspectus
async def main():
    async with conspectus.connect("http://localhost:8642", api_key="k"):
        pass
asyncio.run(main())
"""
BLOCKING_REMOTE = "import conspectus\nwith conspectus.connect('http://localhost:8642', api_key='k'): pass"
COMMAND = """
import contextlib, io, sys
from conspectus.cli.entry import main
sys.argv = ["conspectus", *{arguments!r}]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()
"""
SERVERS = {"alembic", "dbos", "fastapi", "mcp", "structlog", "uvicorn"}
ENGINES = {"faiss", "onnxruntime", "sqlalchemy", "tokenizers"}


def list_loaded_modules(program: str, folder: Path) -> set[str]:
    """The modules that a program loads."""
    command = [sys.executable, "-c", f"{program}\n{LOADED}"]
    return set(subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.split())


def test_the_package_alone_loads_nothing_heavy(tmp_path: Path) -> None:
    program = "import conspectus\nconspectus.Query, conspectus.Eq, conspectus.NewDocument"
    assert list_loaded_modules(program, tmp_path) & HEAVY == set()


@pytest.mark.parametrize("program", [REMOTE, BLOCKING_REMOTE], ids=["async", "blocking"])
def test_a_client_loads_neither_engine_nor_server(program: str, tmp_path: Path) -> None:
    assert not list_loaded_modules(program, tmp_path) & (SERVERS | ENGINES)


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["search", "--help"]], ids=" ".join)
def test_commands_that_open_nothing_load_only_what_reads_their_options(
    arguments: list[str], tmp_path: Path
) -> None:
    assert list_loaded_modules(COMMAND.format(arguments=arguments), tmp_path) & HEAVY <= {"typer", "pydantic"}


def test_a_search_loads_only_what_it_asks(tmp_path: Path) -> None:
    """No server, no other database, no reader of web pages and no other service."""
    (tmp_path / "page.txt").write_text("A release is deployed on Tuesdays.", encoding="utf-8")
    add = COMMAND.format(arguments=["--data-dir", "data", "add", "page.txt"])
    search = COMMAND.format(arguments=["--data-dir", "data", "search", "when do we ship?"])
    assert "sqlalchemy" in list_loaded_modules(add, tmp_path)
    modules = list_loaded_modules(search, tmp_path)
    assert not modules & (SERVERS | {"rich.progress", "sqlalchemy.dialects.postgresql", "yaml"})
    names = {name for name in modules if name.startswith("conspectus.")}
    parts = {name.split(".")[1] for name in names}
    assert "records" in parts
    assert not parts & {"chat", "client", "facades", "mcp", "operations", "streams", "time_expressions"}
    services = {name.removeprefix("conspectus.engine.") for name in names if ".engine." in name}
    assert services & set(SERVICES.values()) == {"collections", "documents", "maintenance", "search"}


def test_names_that_are_imported_late_are_what_they_say() -> None:
    program = "import conspectus\nprint(*dir(conspectus))"
    listed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert set(conspectus.__all__) <= set(listed.split())
    classes = [name for name in conspectus.__all__ if isinstance(getattr(conspectus, name), type)]
    assert [name for name in classes if getattr(conspectus, name).__name__ != name] == []
    assert {conspectus.open.__module__, conspectus.connect.__module__} == {"conspectus.sync"}
    with pytest.raises(AttributeError, match="nothing_here"):
        conspectus.nothing_here  # noqa: B018


def test_a_server_loads_no_mcp_and_no_schemas_before_they_are_asked_for(
    tmp_path: Path,
) -> None:
    program = """
import asyncio
from conspectus import Settings, bootstrap
from conspectus.web.app import application
from conspectus.web.openapi import DeferredRoute
from conspectus.web.serve import Server
async def main():
    chosen = Settings(embedder="none")
    async with bootstrap.open("data", settings=chosen) as engine:
        app = application(engine, chosen)
        async with app.router.lifespan_context(app):
            await app.state.readiness.wait_until_begun()
            deferred = [each for each in app.router.routes if isinstance(each, DeferredRoute)]
            assert len(deferred) > 100 and not any("made" in vars(each) for each in deferred)
asyncio.run(main())
"""
    modules = list_loaded_modules(program, tmp_path)
    assert {"fastapi", "sqlalchemy", "uvicorn"} <= modules
    assert not modules & {
        "alembic",
        "dbos",
        "httpx",
        "lxml",
        "mcp",
        "mcp_types",
        "onnxruntime",
    }
