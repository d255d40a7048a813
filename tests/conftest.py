"""What all tests share: Hypothesis profiles and the place of the evaluation data."""

import gc
import importlib
import os
import signal
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.repetitions import IN_FULL
from tests.support.copied_tables import copied_tables
from tests.support.milvus_server import MilvusProcess, milvus_server
from tests.support.postgres_server import PostgresProcess, postgres_server
from tests.support.preloaded import preloaded_commands

pytest.register_assert_rewrite("tests.index_histories", "tests.index_strategies", "tests.programs")

ROOT = Path(__file__).resolve().parents[1]
LONGEST = (
    "test_rolling.py",
    "test_schemathesis.py",
    "test_pages.py",
    "test_serve.py",
    "test_read_only.py",
    "test_milvus_killed.py",
    "test_chat_served.py",
)
"""Modules with tests of many seconds each: one that came last would leave the other processors idle."""
SLOWEST_FILES = 10
SLOW_MACHINE = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("dev", deadline=None, max_examples=25, suppress_health_check=SLOW_MACHINE)
settings.register_profile("thorough", parent=settings.get_profile("dev"), max_examples=IN_FULL)
settings.register_profile("ci", parent=settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_configure(config: pytest.Config) -> None:
    """Let programs that tests start inherit nothing that they would stumble over."""
    if hasattr(config, "workerinput") or config.option.collectonly:
        # Its classes look through all loaded modules: 0.6 s of processor time now, and 5 s after the others.
        importlib.import_module("scim2_tester")
    # PostgreSQL is started by a fork, as another user; gRPC would hold that up, or end the child.
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    # Haystack would report each pipeline to its makers.
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
    # Each client of httpx would read a file of all authorities, in 25 ms of processor time. In a folder, one
    # is looked up when a certificate needs it.
    os.environ.pop("SSL_CERT_FILE", None)
    os.environ["SSL_CERT_DIR"] = ssl.get_default_verify_paths().openssl_capath
    # A shell has what it starts in the background ignore interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collectstart() -> None:
    """While nothing but modules and tests is made, there is no garbage worth looking for."""
    gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest; all others keep their order."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the files that took longest, in CI: where to look when the tests become slow."""
    if not os.environ.get("CI"):
        return
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.location[0]] += report.duration
    terminalreporter.section(f"slowest {SLOWEST_FILES} of {len(seconds)} files")
    for name, duration in seconds.most_common(SLOWEST_FILES):
        terminalreporter.write_line(f"{duration:8.1f} s  {name}")


def pytest_collection_finish() -> None:
    """Tests and modules stay until the end."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Look once for what was never closed; pytest does so five times, but not in what is frozen."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def evaluation() -> Callable[[str], Path]:
    """The folder of a named evaluation set; the test is skipped where it is not on this machine."""
    folder = Path(os.environ.get("CONSPECTUS_EVAL") or ROOT.parent / "shared" / "eval")

    def find(name: str) -> Path:
        if not (folder / name).is_dir():
            pytest.skip(f"no evaluation data at {folder / name}; set CONSPECTUS_EVAL")
        return folder / name

    return find


@pytest.fixture(scope="session", autouse=True)
def copied_stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """New stores of this process are copies; those of programs that tests start make their tables."""
    with copied_tables(tmp_path_factory.mktemp("tables")):
        yield


@pytest.fixture(scope="session")
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of `python` and `conspectus`, which need no time for their start."""
    with preloaded_commands(tmp_path_factory.mktemp("bin")) as folder:
        yield folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresProcess]:
    """A PostgreSQL server for all tests of this process; none of them stops it."""
    with postgres_server() as running:
        yield running


@pytest.fixture
def postgres_url(postgres: PostgresProcess) -> Iterator[str]:
    """A database of its own at the newest version."""
    with postgres.fresh() as url:
        yield url


@pytest.fixture(scope="session")
def milvus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusProcess]:
    """A Milvus server for all tests of this process; none of them stops it."""
    with milvus_server(tmp_path_factory.mktemp("milvus") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def own_milvus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusProcess]:
    """A Milvus server for the tests of one module, which may count what is in it."""
    with milvus_server(tmp_path_factory.mktemp("milvus") / "data") as running:
        yield running
