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
def generated_pages() -> dict[str, str]:
    """The pages that are made from code."""
    return pages.make_pages()


def test_every_public_name_has_an_entry(generated_pages: dict[str, str]) -> None:
    page = generated_pages["reference/python/names.md"]
    assert [name for name in conspectus.__all__ if f"## {name}\n" not in page] == []
    types = [
        (package, name)
        for package in ("model", *python_pages.ADAPTERS)
        for module in python_pages.list_modules(package)
        for name in python_pages.list_public_members(module)
    ]
    missing = [
        public_name
        for public_name in types
        if f"### {public_name[1]}\n" not in generated_pages[f"reference/python/{public_name[0]}.md"]
    ]
    assert (len(types) > 150, missing) == (True, [])


def test_every_method_of_every_service_has_its_signature(generated_pages: dict[str, str]) -> None:
    services = python_pages.list_services()
    assert {"documents", "search", "memory", "graph", "people"} <= services.keys()
    for service, kind in services.items():
        page = generated_pages[f"reference/python/{service}.md"]
        for name in python_pages.list_methods(kind):
            section = page.partition(f"## {name}\n")[2].partition("\n## ")[0]
            assert (f"engine.{service}.{name}(" in section, name) == (True, name)


def test_every_method_has_an_example_that_can_be_compiled(generated_pages: dict[str, str]) -> None:
    for service, kind in python_pages.list_services().items():
        for name in python_pages.list_methods(kind):
            call = re.search(
                rf"Example:\n\n```python\n(?:await )?(engine\.{service}\.{name}\(.*)",
                generated_pages[f"reference/python/{service}.md"],
            )
            assert call and compile(call[1], name, "eval"), name


def test_every_command_and_option_has_an_entry(generated_pages: dict[str, str]) -> None:
    page = "".join(text for path, text in generated_pages.items() if path.startswith("reference/commands/"))
    for name, command in cli_pages.walk_commands(typer.main.get_command(build_app())):
        section = page.partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert (name, "Example:" in section) == (name, True)
        parameters = [parameter for parameter in command.params if parameter.name not in cli_pages.SHARED]
        options = [
            parameter
            for parameter in parameters
            if parameter.param_type_name == "option" and not parameter.hidden
        ]
        names = [name for option in options for name in (*option.opts, *option.secondary_opts)]
        assert (name, [name for name in names if f"`{name}`" not in section]) == (name, [])


def test_every_route_has_an_entry_with_a_request_and_an_answer(generated_pages: dict[str, str]) -> None:
    page = "".join(text for path, text in generated_pages.items() if path.startswith("reference/routes/"))
    sections = re.split(r"^## (?=(?:GET|POST|PUT|PATCH|DELETE) )", page, flags=re.MULTILINE)[1:]
    assert len(sections) > 170
    assert [
        section for section in sections if "```sh\ncurl " not in section or "\nAnswer" not in section
    ] == []


def test_every_setting_and_every_error_has_an_entry(generated_pages: dict[str, str]) -> None:
    settings, errors = generated_pages["reference/settings.md"], generated_pages["reference/errors.md"]
    names = [f"{PREFIX}{name.upper()}" for name in Settings.__dataclass_fields__]
    assert [name for name in names if f"| `{name}` |" not in settings] == []
    codes = {kind.code for kind in errors_page.walk_error_classes()} | set(CODES.values())
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
    texts = llms.make_llms_texts(folder)
    assert "## Guides\n\n- [Guides](guides/index.html)\n- [Chat](guides/chat.html)\n" in texts["llms.txt"]
    assert "# Chat\n\nAsk." in texts["llms-full.txt"] and "toctree" not in texts["llms-full.txt"]
