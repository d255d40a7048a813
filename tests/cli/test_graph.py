"""Graphs on the command line, on a store and on a server."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from lxml import etree

from tests.cli.conftest import Outcome, Remote, Shell

Run = Callable[..., Outcome]
NODES = [
    {"id": "django", "type": "framework", "properties": {"content": "A web framework"}},
    {"id": "python", "type": "language", "aliases": ["py"]},
    {"id": "guido", "type": "person", "name": "Guido van Rossum"},
]
EDGES = [
    {"source_id": "django", "target_id": "python", "type": "written in", "weight": 0.9},
    {"source": "guido", "target": "python", "type": "made", "weight": 0.8, "valid_from": "1991-02-20"},
]
REFUSED: list[tuple[list[str], int]] = [
    (["get-node", "nobody"], 3),
    (["neighbors", "nobody"], 3),
    (["neighbors", "python", "--hops", "99"], 2),
    (["neighbors", "python", "--at", "noon"], 2),
    (["neighbors", "python", "--type", "eats"], 3),
    (["search", "nothing like it"], 3),
    (["search", ""], 2),
    (["snapshot", "noon"], 2),
    (["nodes", "--type", "fish"], 3),
    (["edges", "--node", "nobody"], 3),
    (["export", "--graph", "nowhere"], 3),
    (["add-node", "x", "--property", "y"], 2),
    (["add-nodes", "nowhere.json"], 2),
    (["add-edge", "guido", "python", "--weight", "2"], 2),
    (["delete", "--graph", "nowhere", "--yes"], 3),
    (["delete", "--node", "nobody"], 3),
    (["entities"], 3),
]


def draw_graph(run: Run, folder: Path) -> None:
    """A small graph, of a list and of lines."""
    (folder / "nodes.json").write_text(json.dumps(NODES), encoding="utf-8")
    (folder / "edges.jsonl").write_text("\n".join(map(json.dumps, EDGES)), encoding="utf-8")
    assert run("graph", "add-nodes", folder / "nodes.json").code == 0
    assert run("graph", "add-edges", folder / "edges.jsonl").code == 0


def run_commands(run: Run, folder: Path) -> None:
    """The same commands, with the same answers, whoever is asked."""
    draw_graph(run, folder)
    assert "3 unchanged" in run("graph", "add-nodes", folder / "nodes.json").out
    flask = run(
        "graph", "add-node", "flask", "--alias", "Flask", "--property", "stars=5", "--type", "framework"
    )
    assert (flask.code, flask.out) == (0, "added flask\n")
    edge = run("graph", "add-edge", "flask", "python", "--type", "written in", "--weight", "0.7")
    assert edge.code == 0
    [summary] = run("graph", "list", "--json").json
    assert (summary["nodes"], summary["edges"]) == (4, 3)
    assert [node["id"] for node in run("graph", "nodes", "--type", "framework", "--json").json["nodes"]] == [
        "django",
        "flask",
    ]
    assert run("graph", "get-node", "flask", "--json").json["node"]["properties"] == {"stars": 5}
    assert "1991-02-20" in run("graph", "edges", "--node", "guido").out
    tree = run("graph", "neighbors", "django", "--hops", "2").out
    assert all(line in tree for line in ("-[written in 0.9]-> python", "<-[made 0.8]- Guido", "0.720"))
    assert "Guido" not in run("graph", "neighbors", "django", "--hops", "2", "--at", "1980-01-01").out
    assert "django" in run("graph", "search", "web framework").out
    assert len(run("graph", "snapshot", "1980-01-01", "--json").json["edges"]) == 2
    check_export(run, folder)
    gone = run("graph", "delete", "--node", "flask", "--edge", "nothing", "--json").json
    assert gone == {"nodes": 1, "edges": 1}
    assert run("graph", "delete", "--yes").code == 0
    assert run("graph", "list").code == 3


def check_export(run: Run, folder: Path) -> None:
    """In each form, to a file and to stdout."""
    assert len(json.loads(run("graph", "export").out)["nodes"]) == 4
    for form in ("graphml", "svg"):
        file = folder / f"graph.{form}"
        assert run("graph", "export", "--format", form, "-o", file).code == 0
        assert (
            run("graph", "export", "--format", form).out.strip() == file.read_text(encoding="utf-8").strip()
        )
        assert etree.fromstring(file.read_bytes()).tag.endswith(form)


def test_on_a_store(shell: Shell) -> None:
    run_commands(shell, shell.folder)


def test_on_a_server(remote: Remote) -> None:
    run_commands(remote, remote.shell.folder)


def test_an_exported_graph_is_unchanged_when_it_is_added_again(shell: Shell) -> None:
    (shell.folder / "nodes.json").write_text('[{"id": "ann", "aliases": ["A"]}, {"id": "köln"}]', "utf-8")
    edges = [
        {"source": "ann", "target": "köln", "type": "lives in", "valid_from": "2020-01-01", "weight": 0.5},
        {"source": "köln", "target": "ann", "properties": {"page": 3}},
    ]
    (shell.folder / "edges.json").write_text(json.dumps(edges), "utf-8")
    shell("graph", "add-nodes", shell.folder / "nodes.json")
    shell("graph", "add-edges", shell.folder / "edges.json")
    exported = shell.folder / "graph.json"
    assert shell("graph", "export", "--output", exported).code == 0
    other = {"CONSPECTUS_PATH": str(shell.folder / "other")}
    for elsewhere, outcome in (({}, "unchanged"), (other, "added"), (other, "unchanged")):
        for command in ("add-nodes", "add-edges"):
            parts = shell("graph", command, exported, "--json", **elsewhere).json
            assert [part["outcome"] for part in parts] == [outcome] * 2


def test_edges_that_lead_nowhere_are_named(shell: Shell) -> None:
    draw_graph(shell, shell.folder)
    done = shell("graph", "add-edge", "python", "ruby", "--json")
    assert (done.code, done.json["error"]["missing"]) == (2, ["ruby"])


def test_a_graph_is_deleted_after_a_question(shell: Shell) -> None:
    draw_graph(shell, shell.folder)
    cancelled = shell("graph", "delete", typed="n\n")
    assert (cancelled.code, "'default' with 3 nodes, 2 edges" in cancelled.err) == (1, True)
    assert shell("graph", "delete", typed="y\n").code == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "neither a JSON list nor JSON Lines"),
        ('"x"', "must hold objects"),
        ('[{"type": "x"}]', "item 1"),
        ('[{"id": "a"}, {"id": "b", "colour": "red"}]', "item 2: has an unknown field 'colour'"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(shell: Shell, text: str, reason: str) -> None:
    done = shell("graph", "add-nodes", "-", typed=text)
    assert (done.code, reason in done.err) == (2, True), done.err


def test_what_is_not_there_and_what_cannot_be(shell: Shell) -> None:
    draw_graph(shell, shell.folder)
    for arguments, code in REFUSED:
        done = shell("graph", *arguments)
        assert (arguments, done.code) == (arguments, code), done.err


def test_what_is_said_cannot_forge_the_screen(shell: Shell) -> None:
    shell("graph", "add-node", "a\x1b[2J", "--name", "A\u202e", "--type", "x\x1b]0;x\x07")
    for arguments in (["nodes"], ["list"], ["search", "a"], ["get-node", "a\x1b[2J"]):
        out = shell("graph", *arguments).out
        assert ("\x1b" in out, "\u202e" in out) == (False, False)
