"""The pages of Operate name every metric and only settings, log lines and commands that exist."""

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from conspectus.cli.main import build_app
from conspectus.settings import Settings
from conspectus.web.metrics import Metrics

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "operate").glob("*.md"))
PAGE = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
WEB = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/conspectus/web").glob("*.py"))
NOT_SETTINGS = {"CONFIG", "REQUIREMENTS"}


def read_section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def collect_metrics() -> dict[str, set[str]]:
    """Every name that a scrape shows, with the names of its labels."""
    metrics = Metrics("1.0")
    metrics.observe("GET", "/", 200, 0.1)
    metrics.jobs({"queued": 1})
    families = text_string_to_metric_families(metrics.text().decode())
    samples = [sample for family in families for sample in family.samples]
    return {sample.name: set(sample.labels) for sample in samples if not sample.name.endswith("_created")}


def test_every_metric_is_in_the_page_with_its_labels_and_no_other_is() -> None:
    named = re.findall(r"`(conspectus_[a-z_]+)(?:\{([a-z,]+)\})?`", read_section("Metrics"))
    labels: dict[str, set[str]] = {}
    for name, labels_text in named:
        labels.setdefault(name, set()).update(filter(None, labels_text.split(",")))
    exposed_labels = collect_metrics()
    assert set(labels) == set(exposed_labels)
    assert {
        name: names_of_labels
        for name, names_of_labels in labels.items()
        if names_of_labels and names_of_labels != exposed_labels[name]
    } == {}
    assert {name for name in labels if not labels[name] and exposed_labels[name]} <= {
        "conspectus_request_seconds_sum",
        "conspectus_request_seconds_count",
        "conspectus_jobs",
    }


def test_every_setting_that_is_named_exists() -> None:
    named = set(re.findall(r"CONSPECTUS_([A-Z_]+)", PAGE)) - NOT_SETTINGS
    assert {name.lower() for name in named} <= set(Settings.__dataclass_fields__)


def test_every_line_of_the_log_that_is_named_is_written() -> None:
    rows = re.findall(r"^\| (`.*?) \|", read_section("The log"), re.MULTILINE)
    events = [event for row in rows for event in re.findall(r"`([^`]+)`", row) if event != "logger"]
    assert len(events) >= 8
    assert [event for event in events if f'"{event}"' not in WEB] == []


def test_every_event_of_the_server_is_in_the_page() -> None:
    written = re.findall(r"log\.(?:info|error|warning)\(\s*\"([^\"]+)\"", WEB)
    assert [event for event in written if f"`{event}`" not in read_section("The log")] == []


def test_every_command_that_is_named_exists() -> None:
    app = build_app()
    registered = {command.name for command in app.registered_commands} | {
        group.name for group in app.registered_groups
    }
    named = set(re.findall(r"(?:^    |`|=off |-- )conspectus ([a-z]+)", PAGE, re.MULTILINE))
    assert {"serve", "worker", "keys"} <= named
    assert named <= registered
