"""Build conspectus-client: the same package for programs that only talk to a server.

    python scripts/client_wheel.py [--wheel-dir DIRECTORY]

It has the source of `conspectus` without the server, the command line, stores and indexes, and none of the
libraries that only those use. An import of such a library is replaced by a stand-in that names the whole
package where it is used. Programs import `conspectus` as before; only one of the two can be installed.
"""

import argparse
import ast
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from conspectus.providers.vocabulary import compress_tokens, map_vocabulary

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = {"cli", "evals", "index", "mcp", "records", "testing", "web"}
DATA = {".json", ".txt", ".zlib"}
LIBRARIES = ("chardet", "google-re2", "httpcore", "httpx", "pathspec", "pyyaml", "regex", "tzdata")
"""What a program that only talks to a server needs."""
ABSENT = {
    *("Stemmer", "ahocorasick", "alembic", "faiss", "lxml", "numpy", "onnxruntime", "pydantic"),
    "pydantic_core",
    *(
        "pypdfium2",
        "python_calamine",
        "sqlalchemy",
        "structlog",
        "tokenizers",
        "watchfiles",
    ),
}
STAND_IN = '''"""Stands for libraries that only the whole package has."""

import sys
from typing import Any

from conspectus.errors import ConspectusError


class WholePackageNeeded(ConspectusError):
    """conspectus-client only talks to servers."""

    code = "missing_extra"

    def __init__(self, name: str) -> None:
        replace = "pip uninstall conspectus-client && pip install conspectus"
        super().__init__(f"conspectus-client only talks to servers and has no {name}: {replace}")
        self.package = name


class Absent:
    """Part of a library that is not installed. It may be named while a module is loaded, and not be used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self._name}.{name}")

    def __getitem__(self, item: object) -> Any:
        return self

    def __or__(self, other: object) -> Any:
        return self

    __ror__ = __or__

    def __mro_entries__(self, bases: object) -> tuple[type, ...]:
        return ()

    def __call__(self, *arguments: object, **options: object) -> Any:
        code = sys._getframe(1).f_code
        if code.co_flags & 2:
            raise WholePackageNeeded(self._name)
        return self
'''
NO_STORE = '''"""Stores are in the whole package."""

from conspectus.absent import WholePackageNeeded

raise WholePackageNeeded("stores")
'''
MANIFEST = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "conspectus-client"
version = "{version}"
description = "Client of a Conspectus server: find, rank, pack and explain context for language models."
license = "Apache-2.0"
license-files = ["LICENSE"]
requires-python = "{python}"
dependencies = {dependencies}

[tool.setuptools.packages.find]
where = ["src"]

[tool.setuptools.package-data]
conspectus = ["py.typed", {data}]
"""


def main() -> None:
    """Build the wheel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel-dir", type=Path, default=ROOT / "dist")
    print(built(parser.parse_args().wheel_dir))


def built(wheels: Path) -> Path:
    """The wheel in that folder."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_sources(folder / "src" / "conspectus")
        (folder / "pyproject.toml").write_text(manifest(), encoding="utf-8")
        shutil.copy(ROOT / "LICENSE", folder)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*command, "--wheel-dir", wheels, folder], check=True)
    return next(wheels.glob("conspectus_client-*.whl"))


def manifest() -> str:
    """Its pyproject.toml: version, Python and the bounds of its libraries are those of the whole package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    chosen = [each for each in project["dependencies"] if each.split(">")[0].lower() in LIBRARIES]
    data = ", ".join(f'"**/*{ending}"' for ending in sorted(DATA))
    python = project["requires-python"]
    return MANIFEST.format(version=project["version"], python=python, dependencies=chosen, data=data)


def write_sources(target: Path) -> None:
    """Write the modules without what is absent, and the data that they read."""
    package = ROOT / "src" / "conspectus"
    for path in sorted(package.rglob("*")):
        place = path.relative_to(package)
        if place.parts[0] in LEFT_OUT or {"minilm", "__pycache__"} & {*place.parts}:
            continue
        copy = target / place
        if path.suffix == ".py":
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(without_absent(path.read_text(encoding="utf-8")), encoding="utf-8")
        elif path.suffix == ".tokens":
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.with_suffix(".zlib").write_bytes(compress_tokens(map_vocabulary(path.stem)))
        elif path.suffix in DATA or path.name == "py.typed":
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    (target / "absent.py").write_text(STAND_IN, encoding="utf-8")
    (target / "records").mkdir()
    (target / "records" / "__init__.py").write_text(NO_STORE, encoding="utf-8")


def without_absent(source: str) -> str:
    """The source, its imports of libraries that are absent replaced."""
    lines = source.splitlines(keepends=True)
    found = (each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.Import | ast.ImportFrom))
    for node in sorted(found, key=lambda each: -each.lineno):
        names = list(replaced(node))
        if names:
            indent = " " * node.col_offset
            stands = [f"{indent}{name} = Absent({whole!r})\n" for name, whole in names]
            lines[node.lineno - 1 : node.end_lineno] = [
                f"{indent}from conspectus.absent import Absent\n",
                *stands,
            ]
    return "".join(lines)


def replaced(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """The names that an import binds, and what each stands for; nothing for a library that is there."""
    if isinstance(node, ast.ImportFrom):
        if (node.module or "").split(".")[0] in ABSENT and not node.level:
            yield from ((each.asname or each.name, f"{node.module}.{each.name}") for each in node.names)
        return
    for each in node.names:
        if each.name.split(".")[0] in ABSENT:
            yield each.asname or each.name.split(".")[0], each.name


if __name__ == "__main__":
    main()
