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
EXCLUDED_PACKAGES = {"cli", "evals", "index", "mcp", "records", "testing", "web"}
DATA_SUFFIXES = {".json", ".txt", ".zlib"}
LIBRARIES = ("chardet", "google-re2", "httpcore", "httpx", "pathspec", "pyyaml", "regex", "tzdata")
"""What a program that only talks to a server needs."""
ABSENT_LIBRARIES = {
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
conspectus = ["py.typed", {data_patterns}]
"""


def main() -> None:
    """Build the wheel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel-dir", type=Path, default=ROOT / "dist")
    print(build_wheel(parser.parse_args().wheel_dir))


def build_wheel(wheel_folder: Path) -> Path:
    """Build the wheel in this folder."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_sources(folder / "src" / "conspectus")
        (folder / "pyproject.toml").write_text(project_file(), encoding="utf-8")
        shutil.copy(ROOT / "LICENSE", folder)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*command, "--wheel-dir", wheel_folder, folder], check=True)
    return next(wheel_folder.glob("conspectus_client-*.whl"))


def project_file() -> str:
    """Return its pyproject.toml; version, Python and bounds of libraries are those of the whole package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = [
        requirement
        for requirement in project["dependencies"]
        if requirement.split(">")[0].lower() in LIBRARIES
    ]
    data_patterns = ", ".join(f'"**/*{suffix}"' for suffix in sorted(DATA_SUFFIXES))
    python = project["requires-python"]
    return MANIFEST.format(
        version=project["version"], python=python, dependencies=requirements, data_patterns=data_patterns
    )


def write_sources(target: Path) -> None:
    """Write the modules without absent libraries, and the data that they read."""
    package = ROOT / "src" / "conspectus"
    for path in sorted(package.rglob("*")):
        relative_path = path.relative_to(package)
        if relative_path.parts[0] in EXCLUDED_PACKAGES or {"minilm", "__pycache__"} & {*relative_path.parts}:
            continue
        copied_path = target / relative_path
        if path.suffix == ".py":
            copied_path.parent.mkdir(parents=True, exist_ok=True)
            copied_path.write_text(replace_absent_imports(path.read_text(encoding="utf-8")), encoding="utf-8")
        elif path.suffix == ".tokens":
            copied_path.parent.mkdir(parents=True, exist_ok=True)
            copied_path.with_suffix(".zlib").write_bytes(compress_tokens(map_vocabulary(path.stem)))
        elif path.suffix in DATA_SUFFIXES or path.name == "py.typed":
            copied_path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copied_path)
    (target / "absent.py").write_text(STAND_IN, encoding="utf-8")
    (target / "records").mkdir()
    (target / "records" / "__init__.py").write_text(NO_STORE, encoding="utf-8")


def replace_absent_imports(source: str) -> str:
    """Return the source with stand-ins for the imports of absent libraries."""
    lines = source.splitlines(keepends=True)
    imports = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom))
    for node in sorted(imports, key=lambda node: -node.lineno):
        bindings = list(absent_names(node))
        if bindings:
            indent = " " * node.col_offset
            stand_ins = [f"{indent}{name} = Absent({full_name!r})\n" for name, full_name in bindings]
            lines[node.lineno - 1 : node.end_lineno] = [
                f"{indent}from conspectus.absent import Absent\n",
                *stand_ins,
            ]
    return "".join(lines)


def absent_names(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Yield the names that an import of an absent library binds, each with what it stands for."""
    if isinstance(node, ast.ImportFrom):
        if (node.module or "").split(".")[0] in ABSENT_LIBRARIES and not node.level:
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)
        return
    for alias in node.names:
        if alias.name.split(".")[0] in ABSENT_LIBRARIES:
            yield alias.asname or alias.name.split(".")[0], alias.name


if __name__ == "__main__":
    main()
