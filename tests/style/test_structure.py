"""Rules of structure that the import contract cannot say."""

import ast
import json
import re
import sys
import tomllib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from tests.style.sources import MODULES, PACKAGE, ROOT, name_of, nodes, read, syntax_tree

CORE = {
    "access",
    "chat",
    "graph",
    "ingest",
    "memory",
    "model",
    "ports",
    "retrieval",
    "streams",
    "text",
    "time_expressions",
    "window",
}
PURE = "Ranking and packing are pure: no store, index or model in reach"
"""The import contract that names the pure modules. Those of `retrieval` that are not have a port."""
CLOCK_READS = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today"}
LOCKS = ("base.txt", "server.txt", "server-full.txt", "dev.txt")
FULLY_DOCUMENTED = ("engine/", "errors.py", "model/", "ports/", "settings.py", "sync/")


def imported(source: str) -> set[str]:
    """Every imported module or name, in full."""
    names = set()
    for node in nodes(source):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def foreign(source: str) -> set[str]:
    """Imported packages that are neither ours nor of the standard library."""
    return {name.split(".")[0] for name in imported(source)} - sys.stdlib_module_names - {"conspectus"}


def ports_used(source: str) -> set[str]:
    """What a module imports of the ports."""
    return {name for name in imported(source) if f"{name}.".startswith("conspectus.ports.")}


def clocks_used(source: str) -> set[str]:
    """What a module imports of `time`, and which functions of dates that read a clock it calls."""
    attributes = {ast.unparse(node) for node in nodes(source) if isinstance(node, ast.Attribute)}
    return {name for name in imported(source) if f"{name}.".startswith("time.")} | (attributes & CLOCK_READS)


def undocumented(source: str) -> list[str]:
    """Public classes, functions and methods without a docstring."""
    module = syntax_tree(source)
    classes = [n for n in module.body if isinstance(n, ast.ClassDef) and not n.name.startswith("_")]
    bodies = [module.body, *(node.body for node in classes)]
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    public = [n for body in bodies for n in body if isinstance(n, kinds) and not n.name.startswith("_")]
    return [node.name for node in public if ast.get_docstring(node) is None]


def offences(check: Callable[[str], Collection[str]], *prefixes: str) -> dict[str, Collection[str]]:
    """What a check finds in the modules whose paths have one of these prefixes, by path."""
    findings = {name_of(path): check(read(path)) for path in MODULES if name_of(path).startswith(prefixes)}
    return {name: words for name, words in findings.items() if words}


def test_the_model_needs_nothing_but_the_standard_library() -> None:
    assert offences(foreign, "model/", "errors") == {}


def pure_modules() -> list[Path]:
    contracts = project_settings()["tool"]["importlinter"]["contracts"]
    [names] = [contract["source_modules"] for contract in contracts if contract["name"] == PURE]
    modules = {path: f"conspectus.{name_of(path).removesuffix('.py').replace('/', '.')}" for path in MODULES}
    return [
        path for path, module in modules.items() if any(f"{module}.".startswith(f"{name}.") for name in names)
    ]


def test_ranking_and_packing_touch_no_port_and_no_clock() -> None:
    touched = {name_of(path): ports_used(read(path)) | clocks_used(read(path)) for path in pure_modules()}
    assert {name: names for name, names in touched.items() if names} == {}


def test_modules_say_what_they_are() -> None:
    silent = [path for path in MODULES if read(path) and not ast.get_docstring(syntax_tree(read(path)))]
    assert silent == []


def test_what_callers_see_is_documented() -> None:
    assert offences(undocumented, *FULLY_DOCUMENTED) == {}


def names_in_rules(source: str) -> set[str]:
    """Names of files and folders in the constants of a module with rules."""
    constants = [
        node.value
        for node in syntax_tree(source).body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
    ]
    texts = {
        node.value
        for constant in constants
        for node in ast.walk(constant)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return {text for text in texts if re.fullmatch(r"/?[a-z_]+/[a-z_/]*(\.py)?|[a-z_]+\.py", text)}


def is_named(name: str) -> bool:
    """Whether a name in a rule is that of a file or folder of the package or of the repository."""
    path = name.strip("/")
    return any((folder / path).exists() for folder in (PACKAGE, ROOT, ROOT / "docs"))


def module_exists(name: str) -> bool:
    path = ROOT.joinpath("src", *name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def project_settings() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_rules_name_files_that_exist() -> None:
    names = {name for path in (ROOT / "tests/style").glob("test_*.py") for name in names_in_rules(read(path))}
    assert sorted(name for name in names if not is_named(name)) == []


def test_import_contracts_name_modules_that_exist() -> None:
    lists = ("source_modules", "forbidden_modules", "protected_modules", "allowed_importers", "modules")
    contracts = project_settings()["tool"]["importlinter"]["contracts"]
    names = {name for contract in contracts for key in lists for name in contract.get(key, ())}
    for contract in contracts:
        for layer in contract.get("layers", ()):
            names |= {f"conspectus.{name.strip()}" for name in layer.split("|") if "(" not in name}
    ours = {name for name in names if name.startswith("conspectus.")}
    assert sorted(name for name in ours if not module_exists(name)) == [] and ours


def test_exceptions_of_the_linters_name_files_that_exist() -> None:
    tools = project_settings()["tool"]
    patterns = tools["ruff"]["lint"]["per-file-ignores"]
    assert [pattern for pattern in patterns if not any(ROOT.glob(pattern))] == []
    modules = {name for override in tools["mypy"]["overrides"] for name in override["module"]}
    ours = {name for name in modules if name.startswith("conspectus.")}
    assert sorted(name for name in ours if not module_exists(name)) == []


def test_every_part_of_the_core_is_in_its_contract() -> None:
    settings = project_settings()
    contracts = {contract["name"]: contract for contract in settings["tool"]["importlinter"]["contracts"]}
    present = {f"conspectus.{name_of(path).split('/')[0].removesuffix('.py')}" for path in MODULES}
    core = {f"conspectus.{name}" for name in CORE}
    assert set(contracts["The core is plain Python"]["source_modules"]) == present & core


def test_the_notice_names_everything_that_is_installed() -> None:
    """Each in the part of the first lock that has it; each lock holds those before it."""
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    named: set[str] = set()
    for lock in LOCKS:
        pins = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
        part = notice.split(f"(requirements/{lock}):\n")[1].split("(requirements/")[0]
        added = re.findall(r"^([a-z0-9.-]+)  +\S", part, re.MULTILINE)
        assert sorted(added) == sorted(set(re.findall(r"^([a-z0-9.-]+)==", pins, re.MULTILINE)) - named)
        named.update(added)


@pytest.mark.parametrize("name", (*LOCKS, "docs.txt", "stores.txt"))
def test_requirements_are_pinned_hashed_and_name_no_registry(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    entries = re.split(r"\n(?=[a-z])", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).strip())
    assert [entry for entry in entries if "==" not in entry or "--hash=sha256:" not in entry] == []
    assert re.findall(r"https?://|file:|--(?:extra-)?index|--find-links|--trusted", text) == []


@pytest.mark.parametrize("folder", ["console", "clients/typescript"])
def test_locks_of_npm_are_hashed_and_name_no_registry(folder: str) -> None:
    lock = json.loads((ROOT / folder / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: entry for name, entry in lock["packages"].items() if "node_modules/" in name}
    local = {name for name, entry in packages.items() if entry.get("link")}
    assert [name for name, entry in packages.items() if "integrity" not in entry and name not in local] == []
    assert "://" not in "".join(entry.get("resolved", "") for entry in packages.values())


def test_planted_offences_are_found() -> None:
    assert foreign("import numpy as np\nfrom datetime import UTC\n") == {"numpy"}
    assert ports_used("from conspectus.ports.web import Reranker\n") == {"conspectus.ports.web.Reranker"}
    assert ports_used("import conspectus.ports\n") == {"conspectus.ports"}
    assert clocks_used("from time import perf_counter\nat = datetime.now()\n") == {
        "time.perf_counter",
        "datetime.now",
    }
    assert not clocks_used("from datetime import time\n")
    assert names_in_rules('A = {"retrieval/absent": ("window/", "a b")}\nB: str = "x.py"\n') == {
        "retrieval/absent",
        "window/",
        "x.py",
    }
    assert not is_named("retrieval/absent") and is_named("retrieval/fusion.py") and is_named("/window/")
    assert not module_exists("conspectus.retrieval.absent") and module_exists("conspectus.window")
    assert undocumented('class A:\n    """A."""\n    def f(self): ...\n    def _g(self): ...\n') == ["f"]
