"""Build the wheel, install it in fresh environments, and run what a newcomer runs first.

Python 3.11 gets pip 23.0. The newest Python at hand keeps its pip, and gets a wheel made without a compiler,
for which the newest pip, that of this environment, finds all packages.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
import zipfile
from collections.abc import Sequence
from pathlib import Path

from scripts import client_wheel, follow_get_started, follow_readme

ROOT = Path(__file__).resolve().parents[1]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
PYTHONS = ("3.14", "3.13", "3.12", "3.11")
OLD_PYTHON, OLD_PIP = "3.11", "23.0"
"""pip 23.0 does not run on Python 3.12 or newer."""
FIRST_PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGE = "<html><title>Releases</title><body><p>A release is deployed on Tuesdays.</p></body></html>"
MAX_SECONDS = 120
BUILD_DATE = {"SOURCE_DATE_EPOCH": "1767225600"}
"""Builds of a commit have the same bytes with this; a release takes the date of its commit."""
MAX_PACKAGES, MAX_MEGABYTES = 60, 350
"""Of the base install, without pip and setuptools, and without what Python compiles."""
MAX_CLIENT_PACKAGES, MAX_CLIENT_MEGABYTES = 20, 20
CLIENT = """
import asyncio, sys
import conspectus
from conspectus.model.memory import Scope

def blocking():
    with conspectus.connect(sys.argv[1]) as engine:
        engine.add([conspectus.NewDocument("Invoices are paid on Fridays.", title="Invoices")])
        query = conspectus.Query("when are invoices paid?", limit=3)
        assert "Fridays" in engine.retrieve(query).hits[0].chunk.text
        window = engine.window(query, 200)
        assert "Fridays" in window.text and window.citations and engine.explain(query, 200).trace
        engine.memory.add("The user likes tea.", scope=Scope(user="anna"))
        assert engine.tokenizer()("a release") == 2

async def awaited():
    async with conspectus.connect(sys.argv[1]) as engine:
        assert "default" in [collection.name for collection in await engine.collections.list()]
        try:
            await engine.retrieve("x", collection="nothing")
        except conspectus.ConspectusError as fault:
            assert fault.code == "not_found", fault

blocking()
asyncio.run(awaited())
try:
    conspectus.open("folder").__enter__()
except conspectus.ConspectusError as fault:
    print(fault)
"""
SIZES = """
from importlib.metadata import distributions
packages = {package.name.lower(): package for package in distributions()}
counted = [package for name, package in packages.items() if name not in ("pip", "setuptools")]
files = [file.locate() for package in counted for file in package.files or () if file.suffix != ".pyc"]
print(len(counted), sum(file.stat().st_size for file in files if file.exists()) // 1_000_000)
"""


def main() -> None:
    """Try the wheel in each environment."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        compiled, pure = build_wheel(folder / "compiled"), build_wheel(folder / "pure", CC="false")
        again = build_wheel(folder / "again", umask=0o077)
        if again.read_bytes() != compiled.read_bytes():
            sys.exit(f"two builds of {compiled.name} differ: {', '.join(list_differences(compiled, again))}")
        if not pure.name.endswith("-py3-none-any.whl") or compiled.name == pure.name:
            sys.exit(f"wheels with and without the kernels are named {compiled.name} and {pure.name}")
        resolve = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        run_command([*resolve, pure], folder)
        print(try_old_pip(folder / "old", compiled, python_at(OLD_PYTHON)))
        print(follow_get_started.follow_pages(pure, ROOT / "docs", newest_python()))


def list_differences(first: Path, second: Path) -> list[str]:
    """Return the files of two wheels that differ; order and dates of their entries count, too."""
    with zipfile.ZipFile(first) as first_wheel, zipfile.ZipFile(second) as second_wheel:
        files = [
            [(file.filename, file.CRC, file.date_time, file.external_attr) for file in wheel.infolist()]
            for wheel in (first_wheel, second_wheel)
        ]
    return sorted({file[0] for file in set(files[0]) ^ set(files[1])}) or ["the order of the files"]


def build_wheel(folder: Path, *, umask: int = 0o022, **variables: str) -> Path:
    """Build the wheel from a copy of the sources, without the leftovers of earlier builds."""
    source, wheels = folder / "source", folder / "wheels"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so", "*.pyd")
    shutil.copytree(ROOT / "src", source / "src", ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, source)
    package = source / "src"
    files = (path for path in package.rglob("*") if path.is_file() and path.suffix != ".c")
    expected = {path.relative_to(package).as_posix() for path in files}
    expected |= {"conspectus/web/console/index.html", "conspectus/web/docs/index.html.gz"}
    expected |= {f"conspectus-{VERSION}.dist-info/licenses/{name}" for name in ("LICENSE", "NOTICE")}
    pip_wheel = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    run_command([*pip_wheel, "--wheel-dir", wheels, source], folder, umask=umask, **BUILD_DATE | variables)
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        missing = expected - set(opened.namelist())
    if missing:
        sys.exit(f"not in the wheel: {sorted(missing)}")
    return wheel


def newest_python() -> str:
    """Return the newest Python here that the project supports."""
    return next((python for version in PYTHONS if (python := python_at(version))), sys.executable)


def python_at(version: str) -> str | None:
    """Return a Python of this version: on the path, or among those of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    on_path = shutil.which(f"python{version}")
    for python in filter(None, (on_path, *map(str, pyenv.glob(f"{version}.*/bin/python")))):
        if subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0:
            return python
    return None


def try_old_pip(folder: Path, wheel: Path, python: str | None) -> str:
    """Install the wheel in a fresh environment and run what a newcomer runs, and a server."""
    if python is None:
        return f"Python {OLD_PYTHON} is not here: pip {OLD_PIP} was not tried"
    started = time.monotonic()
    folder.mkdir()
    run_command([python, "-m", "venv", folder / "venv"], folder)
    environment_python = folder / "venv" / "bin" / "python"
    install: list[str | Path] = [environment_python, "-m", "pip", "install", "--quiet"]
    run_command([*install, f"pip=={OLD_PIP}"], folder)
    run_command([*install, "--no-compile", wheel], folder)
    run_command([environment_python, "-m", "pip", "check"], folder)
    version = run_command([environment_python, "-m", "pip", "--version"], folder)
    packages, megabytes = check_size(environment_python, folder, MAX_PACKAGES, MAX_MEGABYTES)
    try_programs(environment_python, folder)
    print(try_server(environment_python, folder))
    run_command([*install, "--no-compile", f"conspectus[mcp,openai] @ {wheel.as_uri()}"], folder)
    print(follow_readme.follow_readme(environment_python))
    duration = f"{time.monotonic() - started:.0f} s"
    return f"{version} installed {packages} packages, {megabytes} MB, and the wheel ran: {duration}"


def check_size(python: Path, folder: Path, max_packages: int, max_megabytes: int) -> tuple[int, int]:
    """Return how many packages an environment has, and their megabytes; exit if they are too many."""
    packages, megabytes = map(int, run_command([python, "-c", SIZES], folder).split())
    if packages > max_packages or megabytes > max_megabytes:
        sys.exit(f"{folder.name} has {packages} packages and {megabytes} MB")
    return packages, megabytes


def try_client(address: str, folder: Path, python: Path) -> str:
    """Install conspectus-client in an environment of its own, and ask a server with it."""
    wheel = client_wheel.build_wheel(folder / "wheels")
    run_command([python, "-m", "venv", folder / "client"], folder)
    client_python = folder / "client" / "bin" / "python"
    run_command([client_python, "-m", "pip", "install", "--quiet", "--no-compile", wheel], folder)
    run_command([client_python, "-m", "pip", "check"], folder)
    packages, megabytes = check_size(client_python, folder, MAX_CLIENT_PACKAGES, MAX_CLIENT_MEGABYTES)
    output = run_command([client_python, "-c", CLIENT, address], folder)
    if "pip install conspectus" not in output:
        sys.exit(f"a client that opens a folder says {output!r}")
    return f"conspectus-client: {packages} packages, {megabytes} MB"


def try_programs(python: Path, folder: Path) -> None:
    """Run the first program of the README, and the first commands."""
    (folder / "first.py").write_text(
        FIRST_PROGRAM.findall((ROOT / "README.md").read_text("utf-8"))[0], "utf-8"
    )
    (folder / "page.html").write_text(PAGE, "utf-8")
    command: list[str | Path] = [python.with_name("conspectus"), "--data-dir", folder / "data"]
    expected = {
        (python, "first.py"): "",
        (*command, "--version"): VERSION,
        (*command, "add", "page.html"): "",
        (*command, "search", "when do we ship?"): "Tuesdays",
    }
    for arguments, expected_text in expected.items():
        if not (output := run_command(arguments, folder)) or expected_text not in output:
            sys.exit(f"{arguments}: {expected_text!r} is not in {output!r}")


def try_server(python: Path, folder: Path) -> str:
    """Start a server, ask it with the client, and end it."""
    command: list[str | Path] = [
        python.with_name("conspectus"),
        "--data-dir",
        folder / "data",
        "serve",
        "--port",
        "0",
        "--no-auth",
    ]
    server = subprocess.Popen(
        command, cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        address = next((line.split()[2] for line in server.stderr or () if "listening on" in line), None)
        if address is None:
            sys.exit(f"{command} did not start")
        with urllib.request.urlopen(f"{address}/healthz", timeout=MAX_SECONDS):
            client_report = try_client(address, folder, python)
        server.terminate()
        server.communicate(timeout=MAX_SECONDS)
    finally:
        server.kill()
    if server.returncode != 0:
        sys.exit(f"{command} ended with {server.returncode}")
    return client_report


def run_command(command: Sequence[str | Path], folder: Path, *, umask: int = -1, **variables: str) -> str:
    """Return the standard output of a command; exit if it fails."""
    all_variables = environment() | variables
    process = subprocess.run(
        command, cwd=folder, env=all_variables, umask=umask, capture_output=True, text=True, check=False
    )
    if process.returncode != 0:
        line = " ".join(map(str, command))
        sys.exit(f"{line} ended with {process.returncode}:\n{process.stdout}{process.stderr}")
    return process.stdout.strip()


def environment() -> dict[str, str]:
    """Return the variables of this process that do not change the trial."""
    return {
        name: content for name, content in os.environ.items() if not name.startswith(("PYTHON", "CONSPECTUS"))
    }


if __name__ == "__main__":
    main()
