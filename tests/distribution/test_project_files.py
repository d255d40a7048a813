"""The files around the package: they name what there is."""

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from scripts.install_sizes import PAGE, REQUIREMENTS, list_required_packages

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def commands(path: Path) -> str:
    jobs = read(path)["jobs"].values()
    return "\n".join(step.get("run", "") for job in jobs for step in job["steps"])


def test_ci_runs_every_python_that_is_supported() -> None:
    versions = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python"]
    first, end = re.findall(r"3\.(\d+)", PROJECT["requires-python"])
    assert versions == [f"3.{minor}" for minor in range(int(first), int(end))]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_do_little_and_run_what_there_is(path: Path) -> None:
    assert read(path)["permissions"]["contents"] == "read"
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {name for line in re.findall(r"\bmake ([a-z -]+)", commands(path)) for name in line.split()}
    assert named <= targets
    assert [
        name for name in re.findall(r"scripts/\w+\.py", commands(path)) if not (ROOT / name).exists()
    ] == []


def test_ci_makes_what_there_is_and_the_image_last() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    targets = re.findall(r"^timeout .* make (.+)$", script, re.MULTILINE)
    assert targets == ["test ALSO=wheel", "image"]
    rules = dict(re.findall(r"^([a-z]+):.*\n\t(.+)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert rules["image"] == "scripts/build_image.sh"
    for file in (".ci/run", rules["image"]):
        done = subprocess.run(["bash", "-n", ROOT / file], capture_output=True, text=True, check=False)
        assert (file, done.returncode, done.stderr) == (file, 0, "")


def test_a_release_is_published_without_a_stored_secret() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    assert yaml.safe_load(text)["jobs"]["publish"]["permissions"]["id-token"] == "write"
    assert "secrets." not in text and "SOURCE_DATE_EPOCH" in text


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_forms_for_issues_can_be_shown(path: Path) -> None:
    form = read(path)
    parts = form.get("body", form.get("contact_links"))
    assert parts and all({"attributes"} <= part.keys() or {"url", "about"} <= part.keys() for part in parts)


def test_the_citation_names_this_version() -> None:
    citation = read(ROOT / "CITATION.cff")
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])


def test_the_dashboard_asks_for_metrics_that_the_server_has() -> None:
    board = json.loads((ROOT / "deploy" / "grafana" / "conspectus.json").read_text("utf-8"))
    expressions = {target["expr"] for panel in board["panels"] for target in panel.get("targets", ())}
    source = (ROOT / "src" / "conspectus" / "web" / "metrics.py").read_text("utf-8")
    names = {
        re.sub(r"_(bucket|count|sum|total)$", "", name)
        for name in re.findall(r"conspectus_\w+", " ".join(expressions))
    }
    assert names
    assert [name for name in names if f'"{name}' not in source] == []


def test_the_page_on_installing_lists_what_is_installed() -> None:
    """After `make lock`, `python scripts/install_sizes.py` writes the list anew."""
    required = list_required_packages()
    page = PAGE.read_text("utf-8")
    listed = re.findall(r"^\| ([\w-]+) \| [\d.]+ \| [^|]+ \|$", page, re.MULTILINE)
    [smaller] = re.findall(r"^\| (\d+) smaller ones \|", page, re.MULTILINE)
    [total] = re.findall(r"^\| \*\*(\d+) packages\*\* \|", page, re.MULTILINE)
    lines = REQUIREMENTS.read_text("utf-8").splitlines()
    on_some_platforms = [line for line in lines if "==" in line and ";" in line]
    assert set(listed) <= required.keys()
    assert len(listed) + int(smaller) == int(total)
    assert len(required) - len(on_some_platforms) <= int(total) <= len(required)
    assert {"huggingface-hub": ["tokenizers"], "hf-xet": ["huggingface-hub"]}.items() <= required.items()
