"""What the files of a deployment say: the Dockerfile, compose.yaml and the manifests for Kubernetes."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
MANIFESTS = ROOT / "deploy" / "kubernetes"
OWN_FILE = "kustomization.yaml"
EXAMPLE = "secret.example.yaml"


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction of a Dockerfile: `stage` counts from 0."""

    stage: int
    name: str
    rest: str

    @property
    def words(self) -> list[str]:
        """What follows the name, from the JSON form too."""
        return list(json.loads(self.rest)) if self.rest.startswith("[") else self.rest.split()


def dockerfile() -> list[Step]:
    """The instructions, each with its continued lines; what stands before the first FROM is of stage -1."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))
    steps: list[Step] = []
    stage = -1
    for line in text.replace("\\\n", "").split("\n"):
        name, _, rest = line.partition(" ")
        stage += name == "FROM"
        steps.append(Step(stage, name, rest.strip()))
    return steps


def last_stage(name: str) -> list[Step]:
    """The instructions of that name in the stage that is shipped."""
    steps = dockerfile()
    return [step for step in steps if step.stage == steps[-1].stage and step.name == name]


def compose() -> dict[str, Any]:
    """The compose file."""
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    return loaded


def kustomization() -> dict[str, Any]:
    """What is applied, and which images are meant."""
    loaded: dict[str, Any] = yaml.safe_load((MANIFESTS / OWN_FILE).read_text(encoding="utf-8"))
    return loaded


def manifests() -> list[dict[str, Any]]:
    """Every object that is applied, and the example of a secret."""
    paths = [path for path in sorted(MANIFESTS.glob("*.yaml")) if path.name != OWN_FILE]
    return [manifest for path in paths for manifest in yaml.safe_load_all(path.read_text(encoding="utf-8"))]


def of_kind(kind: str) -> list[dict[str, Any]]:
    """The objects of a kind."""
    return [manifest for manifest in manifests() if manifest["kind"] == kind]


def pods() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """For each Deployment its component, the labels of its pods and what they are made of."""
    for deployment in of_kind("Deployment"):
        template = deployment["spec"]["template"]
        labels = template["metadata"]["labels"]
        yield labels["app.kubernetes.io/component"], labels, template["spec"]
