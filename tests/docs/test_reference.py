"""The reference has every public name, command, option, route, setting and error, and nothing is missing."""

import re
from pathlib import Path

import pytest
import typer
from scripts.docs import cli_pages, errors_page, llms, pages, python_pages

import conspectus
from conspectus.cli.main import build_app
from conspectus.settings import PREFIX, Settings
from conspectus.web.problem_details import CODES


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """The pages that are made from code."""
    return pages.made()


def test_every_public_name_has_an_entry(made: dict[str, str]) -> None:
    page = made["reference/python/names.md"]
    assert [name for name in conspectus.__all__ if f"## {name}\n" not in page] == []
    types = [
        (package, name)
        for package in ("model", *python_pages.ADAPTERS)
        for module in python_pages.modules(package)
        for name in python_pages.public(module)
    ]
    missing = [each for each in types if f"### {each[1]}\n" not in made[f"reference/python/{each[0]}.md"]]
    assert (len(types) > 150, missing) == (True, [])


def test_every_method_of_every_service_has_its_signature(made: dict[str, str]) -> None:
    services = python_pages.services()
    assert {"documents", "search", "memory", "graph", "people"} <= services.keys()
    for service, kind in services.items():
        page = made[f"reference/python/{service}.md"]
        for name in python_pages.methods(kind):
            section = page.partition(f"## {name}\n")[2].partition("\n## ")[0]
            assert (f"engine.{service}.{name}(" in section, name) == (True, name)


def test_every_method_has_an_example_that_can_be_compiled(made: dict[str, str]) -> None:
    for service, kind in python_pages.services().items():
        for name in python_pages.methods(kind):
            call = re.search(
                rf"Example:\n\n```python\n(?:await )?(engine\.{service}\.{name}\(.*)",
                made[f"reference/python/{service}.md"],
            )
            assert call and compile(call[1], name, "eval"), name


def test_every_command_and_option_has_an_entry(made: dict[str, str]) -> None:
    page = "".join(text for path, text in made.items() if path.startswith("reference/commands/"))
    for name, command in cli_pages.commands(typer.main.get_command(build_app())):
        section = page.partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert (name, "Example:" in section) == (name, True)
        own = [each for each in command.params if each.name not in cli_pages.SHARED]
        options = [each for each in own if each.param_type_name == "option" and not each.hidden]
        names = [name for each in options for name in (*each.opts, *each.secondary_opts)]
        assert (name, [each for each in names if f"`{each}`" not in section]) == (name, [])


def test_every_route_has_an_entry_with_a_request_and_an_answer(made: dict[str, str]) -> None:
    page = "".join(text for path, text in made.items() if path.startswith("reference/routes/"))
    sections = re.split(r"^## (?=(?:GET|POST|PUT|PATCH|DELETE) )", page, flags=re.MULTILINE)[1:]
    assert len(sections) > 170
    assert [each for each in sections if "```sh\ncurl " not in each or "\nAnswer" not in each] == []


def test_every_setting_and_every_error_has_an_entry(made: dict[str, str]) -> None:
    settings, errors = made["reference/settings.md"], made["reference/errors.md"]
    names = [f"{PREFIX}{name.upper()}" for name in Settings.__dataclass_fields__]
    assert [name for name in names if f"| `{name}` |" not in settings] == []
    codes = {each.code for each in errors_page.kinds()} | set(CODES.values())
    assert [code for code in sorted(codes) if f"| `{code}` |" not in errors] == []
    assert errors_page.ADVICE.keys() == codes


def test_advice_names_only_settings_that_exist() -> None:
    named = {
        name.lower()
        for text in errors_page.ADVICE.values()
        for name in re.findall(r"CONSPECTUS_([A-Z_]+)", text)
    }
    assert named and named <= set(Settings.__dataclass_fields__)


def test_models_get_an_index_and_all_pages(tmp_path: Path) -> None:
    folder = tmp_path
    (folder / "guides").mkdir()
    (folder / "index.md").write_text("# Start\n")
    (folder / "guides" / "index.md").write_text("# Guides\n\n```{toctree}\nchat\n```\n")
    (folder / "guides" / "chat.md").write_text("# Chat\n\nAsk.\n")
    made = llms.texts(folder)
    assert "## Guides\n\n- [Guides](guides/index.html)\n- [Chat](guides/chat.html)\n" in made["llms.txt"]
    assert "# Chat\n\nAsk." in made["llms-full.txt"] and "toctree" not in made["llms-full.txt"]
