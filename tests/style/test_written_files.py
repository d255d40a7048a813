"""Files are written by `private`, which follows no link, or where a reason is named."""

import ast
from collections.abc import Iterator

from tests.style.sources import MODULES, name_of, nodes, read

WRITING_MODES = frozenset("wax+")
IN_OWN_TEMPORARY_FOLDER = "in a temporary folder that this process made"
NAMED_BY_USER = "a file that the user names, as a shell redirection would write it"
IN_INDEX_FOLDER = "in a folder of an index that was just made, inside the private data directory"
REASONS = {
    "cli/agent_hook.py": "imports C modules only; it has its own `open_own_file`, which follows no link",
    "cli/document_lines.py": NAMED_BY_USER,
    "cli/demo.py": "its mark, in the private folder that it has just made",
    "cli/graph.py": NAMED_BY_USER,
    "cli/memory_manage.py": NAMED_BY_USER,
    "evals/evidence_sets.py": NAMED_BY_USER,
    "index/milvus/connection.py": "the lock of Milvus Lite, which that program makes",
    "index/segments/build.py": IN_INDEX_FOLDER,
    "index/segments/manifest.py": IN_INDEX_FOLDER,
    "ingest/messages.py": IN_OWN_TEMPORARY_FOLDER,
    "private.py": "the one place",
    "records/jobs/files.py": IN_OWN_TEMPORARY_FOLDER,
    "web/bodies.py": IN_OWN_TEMPORARY_FOLDER,
}
"""Why a module writes files itself, by its path in the package."""
FOLDER_REASONS = {
    "cli/agent.py": "folders of the clients' own settings, in a home folder or repository",
    "evals/evidence_sets.py": "the folder of a data set, which the user names",
    "private.py": "the one place",
}
"""Why a module makes folders itself."""


def calls_of(source: str) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls of methods by name."""
    for node in nodes(source):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            yield node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id, node


def writes_file(source: str) -> bool:
    """Whether a module opens a file for writing."""
    for name, call in calls_of(source):
        modes = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
        texts = [mode.value for mode in modes if isinstance(mode, ast.Constant)]
        is_mode = any(
            isinstance(text, str)
            and len(text) < 4
            and WRITING_MODES & set(text)
            and set(text) <= set("rwaxbt+")
            for text in texts
        )
        if name in {"write_text", "write_bytes"} or (name == "open" and is_mode):
            return True
    return any(isinstance(node, ast.Attribute) and node.attr == "O_CREAT" for node in nodes(source))


def makes_folder(source: str) -> bool:
    """Whether a module makes a folder."""
    return any(name in {"mkdir", "makedirs"} for name, _ in calls_of(source))


def test_files_are_written_in_one_place_or_with_a_reason() -> None:
    assert {name_of(path) for path in MODULES if writes_file(read(path))} == REASONS.keys()


def test_folders_are_made_in_one_place_or_with_a_reason() -> None:
    assert {name_of(path) for path in MODULES if makes_folder(read(path))} == FOLDER_REASONS.keys()


def test_planted_writers_are_found() -> None:
    for source in (
        'Path("a").write_text("x")',
        'path.open("ab")',
        'open("a", "w")',
        'path.open(mode="x")',
        "os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)",
    ):
        assert writes_file(source)
    assert not writes_file('path.open("rb")') and not writes_file('engine.open("wiki")')
    assert makes_folder("os.makedirs(a)") and makes_folder('Path("a").mkdir()')
