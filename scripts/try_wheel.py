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
from pathlib import Path

import client_wheel
import follow_get_started
import follow_readme

ROOT = Path(__file__).resolve().parents[1]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
PYTHONS = ("3.14", "3.13", "3.12", "3.11")
OLD_PYTHON, OLD_PIP = "3.11", "23.0"
"""pip 23.0 does not run on Python 3.12 or newer."""
FIRST_PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGE = "<html><title>Releases</title><body><p>A release is deployed on Tuesdays.</p></body></html>"
PATIENCE = 120
DATED = {"SOURCE_DATE_EPOCH": "1767225600"}
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
        asked = conspectus.Query("when are invoices paid?", limit=3)
        assert "Fridays" in engine.retrieve(asked).hits[0].chunk.text
        window = engine.window(asked, 200)
        assert "Fridays" in window.text and window.citations and engine.explain(asked, 200).trace
        engine.memory.add("The user likes tea.", scope=Scope(user="anna"))
        assert engine.tokenizer()("a release") == 2

async def awaited():
    async with conspectus.connect(sys.argv[1]) as engine:
        assert "default" in [each.name for each in await engine.collections.list()]
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
found = {each.name.lower(): each for each in distributions()}
counted = [each for name, each in found.items() if name not in ("pip", "setuptools")]
files = [file.locate() for each in counted for file in each.files or () if file.suffix != ".pyc"]
print(len(counted), sum(file.stat().st_size for file in files if file.exists()) // 1_000_000)
"""


def main() -> None:
    """Try the wheel in each environment."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        compiled, pure = built(folder / "compiled"), built(folder / "pure", CC="false")
        again = built(folder / "again", umask=0o077)
        if again.read_bytes() != compiled.read_bytes():
            sys.exit(f"two builds of {compiled.name} differ: {', '.join(differing(compiled, again))}")
        if not pure.name.endswith("-py3-none-any.whl") or compiled.name == pure.name:
            sys.exit(f"wheels with and without the kernels are named {compiled.name} and {pure.name}")
        resolve = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        ran([*resolve, pure], folder)
        print(tried(folder / "old", compiled, python_at(OLD_PYTHON)))
        print(follow_get_started.followed(pure, ROOT / "docs", newest_python()))


def differing(first: Path, second: Path) -> list[str]:
    """The files of two wheels that differ; the order and the dates of their entries count, too."""
    with zipfile.ZipFile(first) as one, zipfile.ZipFile(second) as other:
        entries = [
            [(each.filename, each.CRC, each.date_time, each.external_attr) for each in wheel.infolist()]
            for wheel in (one, other)
        ]
    return sorted({each[0] for each in set(entries[0]) ^ set(entries[1])}) or ["the order of the files"]


def built(folder: Path, *, umask: int = 0o022, **variables: str) -> Path:
    """The wheel of the sources alone, as what an earlier build left behind would go into it."""
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
    ran([*pip_wheel, "--wheel-dir", wheels, source], folder, umask=umask, **DATED | variables)
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        missing = expected - set(opened.namelist())
    if missing:
        sys.exit(f"not in the wheel: {sorted(missing)}")
    return wheel


def newest_python() -> str:
    """The newest Python here that the project supports."""
    return next((found for version in PYTHONS if (found := python_at(version))), sys.executable)


def python_at(version: str) -> str | None:
    """A Python of this version: on the path, or among those of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    on_path = shutil.which(f"python{version}")
    for each in filter(None, (on_path, *map(str, pyenv.glob(f"{version}.*/bin/python")))):
        if subprocess.run([each, "-c", ""], capture_output=True, check=False).returncode == 0:
            return each
    return None


def tried(folder: Path, wheel: Path, python: str | None) -> str:
    """Install the wheel in a fresh environment and run what a newcomer runs, and a server."""
    if python is None:
        return f"Python {OLD_PYTHON} is not here: pip {OLD_PIP} was not tried"
    started = time.monotonic()
    folder.mkdir()
    ran([python, "-m", "venv", folder / "venv"], folder)
    own = folder / "venv" / "bin" / "python"
    install = [own, "-m", "pip", "install", "--quiet"]
    ran([*install, f"pip=={OLD_PIP}"], folder)
    ran([*install, "--no-compile", wheel], folder)
    ran([own, "-m", "pip", "check"], folder)
    version = ran([own, "-m", "pip", "--version"], folder)
    packages, megabytes = sizes(own, folder, MAX_PACKAGES, MAX_MEGABYTES)
    try_programs(own, folder)
    print(try_server(own, folder))
    ran([*install, "--no-compile", f"conspectus[mcp,openai] @ {wheel.as_uri()}"], folder)
    print(follow_readme.followed(own))
    took = f"{time.monotonic() - started:.0f} s"
    return f"{version} installed {packages} packages, {megabytes} MB, and the wheel ran: {took}"


def sizes(python: Path, folder: Path, max_packages: int, max_megabytes: int) -> tuple[int, int]:
    """How many packages an environment has, and their megabytes."""
    packages, megabytes = map(int, ran([python, "-c", SIZES], folder).split())
    if packages > max_packages or megabytes > max_megabytes:
        sys.exit(f"{folder.name} has {packages} packages and {megabytes} MB")
    return packages, megabytes


def try_client(address: str, folder: Path, python: Path) -> str:
    """Install conspectus-client in an environment of its own, and ask a server with it."""
    wheel = client_wheel.built(folder / "wheels")
    ran([python, "-m", "venv", folder / "client"], folder)
    own = folder / "client" / "bin" / "python"
    ran([own, "-m", "pip", "install", "--quiet", "--no-compile", wheel], folder)
    ran([own, "-m", "pip", "check"], folder)
    packages, megabytes = sizes(own, folder, MAX_CLIENT_PACKAGES, MAX_CLIENT_MEGABYTES)
    said = ran([own, "-c", CLIENT, address], folder)
    if "pip install conspectus" not in said:
        sys.exit(f"a client that opens a folder says {said!r}")
    return f"conspectus-client: {packages} packages, {megabytes} MB"


def try_programs(python: Path, folder: Path) -> None:
    """The first program of the README, and the first commands."""
    (folder / "first.py").write_text(
        FIRST_PROGRAM.findall((ROOT / "README.md").read_text("utf-8"))[0], "utf-8"
    )
    (folder / "page.html").write_text(PAGE, "utf-8")
    command = [python.with_name("conspectus"), "--data-dir", folder / "data"]
    expected = {
        (python, "first.py"): "",
        (*command, "--version"): VERSION,
        (*command, "add", "page.html"): "",
        (*command, "search", "when do we ship?"): "Tuesdays",
    }
    for arguments, words in expected.items():
        if not (said := ran(list(arguments), folder)) or words not in said:
            sys.exit(f"{arguments}: {words!r} is not in {said!r}")


def try_server(python: Path, folder: Path) -> str:
    """Start a server, ask it with the client, and end it."""
    command = [
        python.with_name("conspectus"),
        "--data-dir",
        folder / "data",
        "serve",
        "--port",
        "0",
        "--no-auth",
    ]
    serving = subprocess.Popen(
        command, cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        address = next((line.split()[2] for line in serving.stderr or () if "listening on" in line), None)
        if address is None:
            sys.exit(f"{command} did not start")
        with urllib.request.urlopen(f"{address}/healthz", timeout=PATIENCE):
            asked = try_client(address, folder, python)
        serving.terminate()
        serving.communicate(timeout=PATIENCE)
    finally:
        serving.kill()
    if serving.returncode != 0:
        sys.exit(f"{command} ended with {serving.returncode}")
    return asked


def ran(command: list[str | Path], folder: Path, *, umask: int = -1, **variables: str) -> str:
    """What a command says on its standard output; the end of everything if it fails."""
    own = environment() | variables
    done = subprocess.run(
        command, cwd=folder, env=own, umask=umask, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def environment() -> dict[str, str]:
    """The environment of this process without what would change what is tried."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CONSPECTUS"))
    }


if __name__ == "__main__":
    main()
