"""The playground: a window, what it is made of, and why."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import Page, expect

from conspectus import NewDocument
from conspectus.model.filter import Eq
from conspectus.model.filter_json import filter_from_json
from conspectus.sync import connect
from tests.console.conftest import Opened, Site, scrolls_sideways, violations

QUESTION = "how do we restore a backup?"


def playground_path(question: str = QUESTION, **fields: str | int) -> str:
    rest = "".join(f"&{name}={value}" for name, value in fields.items())
    return f"/playground?collection=docs&query={quote(question)}{rest}"


def parse_number(text: str) -> int:
    return int(re.sub(r"\D", "", text))


def expect_candidates(page: Page) -> None:
    expect(page.get_by_role("heading", name="Every candidate, and what became of it")).to_be_visible()


def test_back_returns_to_the_question_before(visit: Opened, site: Site) -> None:
    page = visit(site, playground_path())
    field = page.get_by_label("Question", exact=True)
    field.fill("what is a source?")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("what.is.a.source"))
    page.get_by_label("Budget").first.press("ArrowLeft")
    page.go_back()
    expect(field).to_have_value(QUESTION)


def test_a_budget_that_cannot_be_is_refused_and_a_conflict_names_its_field(visit: Opened, site: Site) -> None:
    page = visit(site, playground_path(max_tokens=256))
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_contain_text(re.compile("[0-9]+ passages?"))
    budget = page.get_by_role("textbox", name="Budget")
    for refused in ("0", "99999999"):
        budget.fill(refused)
        budget.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("A budget has from 16 to 1,000,000 tokens.")
        expect(budget).to_have_value("256")
    page.goto(f"{site.address}/console{playground_path(max_tokens=256, reserved_tokens=512)}")
    expect(heading).to_have_text("Nothing is in the window.")
    page.get_by_role("button", name="Keep 64").click()
    expect(heading).to_contain_text(re.compile("[0-9]+ passages?"))


def test_the_parts_add_up_to_the_budget(visit: Opened, site: Site) -> None:
    page = visit(site, playground_path(max_tokens=1024))
    expect_candidates(page)
    figures = [parse_number(text) for text in page.locator(".legend").first.locator("b").all_inner_texts()]
    assert sum(figures) == 1024
    assert page.locator(".legend").first.locator("span").last.inner_text() == "= 1,024 tokens"


def test_a_question_is_asked_and_stays_in_the_address(visit: Opened, site: Site) -> None:
    page = visit(site, "/")
    page.get_by_label("Question").fill(QUESTION)
    page.keyboard.press("Enter")
    expect_candidates(page)
    assert "query=how" in page.url
    page.reload()
    expect_candidates(page)


def test_a_block_shows_the_text_that_the_model_gets(visit: Opened, site: Site) -> None:
    page = visit(site, playground_path("which command restores a backup into a folder?", max_tokens=4096))
    blocks = page.locator(".map .block")
    expect(blocks.nth(1)).to_be_visible()
    blocks.nth(1).click()
    panel = page.get_by_role("article", name="The chosen passage")
    expect(panel).to_contain_text("[2]")
    assert panel.get_by_role("region").inner_text() != ""
    tokens = parse_number(blocks.nth(1).locator("strong").inner_text())
    expect(panel.locator(".row").first).to_contain_text(f"{tokens:,} tokens")


def test_a_document_that_is_not_there_is_answered_in_two_clicks(visit: Opened, site: Site) -> None:
    page = visit(site, playground_path())
    page.get_by_label(re.compile("Why isn.t")).click()
    page.locator(".why-panel .chip").first.click()
    answer = page.locator(".why-answer")
    expect(answer).to_contain_text(re.compile(r"rank \d+ of \d+"))
    expect(answer.get_by_role("img")).to_be_visible()
    needed = answer.get_by_role("button", name=re.compile("Use .* tokens"))
    tokens = parse_number(needed.inner_text())
    needed.click()
    expect(page.get_by_label("Budget", exact=True).first).to_have_value(f"{tokens:,}")
    expect(answer).to_contain_text("It is here")
    assert tokens > 2048


def test_statuses_count_every_candidate(visit: Opened, site: Site) -> None:
    page = visit(site, playground_path())
    chips = page.get_by_role("group", name="Show candidates by status").get_by_role("button")
    expect(chips.first).to_contain_text("All")
    total, *parts = (parse_number(text) for text in chips.all_inner_texts())
    assert total == sum(parts)
    chips.nth(1).click()
    expect(page.locator(".candidate .status.lit")).to_have_count(parts[0])


def test_two_budgets_are_compared(visit: Opened, site: Site) -> None:
    page = visit(site, playground_path(max_tokens=1024))
    page.get_by_label("Compare with").select_option("4096")
    expect(page.locator(".compared")).to_contain_text(re.compile("candidates more and [0-9]+ fewer"))
    expect(page.get_by_text("only in the other").first).to_be_visible()


def test_a_filter_is_built_of_conditions(visit: Opened, site: Site) -> None:
    page = visit(site, playground_path())
    expect_candidates(page)
    page.get_by_role("button", name="Options", exact=True).click()
    page.get_by_role("button", name="Add a condition").click()
    page.get_by_label("Field 1").select_option("source")
    page.get_by_label("Value 1").select_option(label="runbooks")
    places = page.locator(".candidate:not(.candidate-heads)")
    expect(places.filter(has_text="handbook /")).to_have_count(0)
    expect(places.filter(has_text="runbooks /").first).to_be_visible()
    page.get_by_role("button", name="Add a condition").click()
    page.get_by_label("Field 2").select_option("metadata")
    page.get_by_label("Key 2").fill("no.such key")
    page.get_by_label("Test 2").select_option("has no value")
    page.get_by_label("Match").select_option("any condition")
    page.get_by_role("group", name="Form of the filter").get_by_role("button", name="JSON").click()
    written = json.loads(page.get_by_label("Filter, as JSON").input_value())
    assert written["or"][1] == {"not": {"field": ["metadata", "no.such key"], "exists": True}}
    assert filter_from_json(written["or"][0]) == Eq("source", written["or"][0]["eq"])
    expect(places.filter(has_text="handbook /").first).to_be_visible()


@pytest.mark.slow
def test_a_filter_is_read_back_from_the_address(visit: Opened, site: Site) -> None:
    times = {"field": "recorded", "from": {"time": "2020-05-01T12:30:00.000Z"}}
    one_of = {"field": "kind", "in": ["page", "5", 5]}
    page = visit(site, playground_path(filter=quote(json.dumps({"and": [times, one_of]}))))
    page.get_by_role("button", name="Options", exact=True).click()
    expect(page.get_by_label("Value 1")).to_have_value(re.compile("^2020-05-01T"))
    expect(page.get_by_label("Value 2")).to_have_value('page, "5", 5')
    page.get_by_role("button", name="Remove condition 2").click()
    page.wait_for_url(lambda url: json.loads(parse_qs(urlsplit(url).query)["filter"][0]) == times)
    nested = {"and": [{"or": [times, one_of]}, times]}
    page = visit(site, playground_path(filter=quote(json.dumps(nested))))
    page.get_by_role("button", name="Options", exact=True).click()
    expect(page.get_by_label("Filter, as JSON")).to_have_value(json.dumps(nested))
    expect(page.get_by_text("This filter is nested")).to_be_visible()


def test_the_time_of_a_question_is_shown_by_step(visit: Opened, site: Site) -> None:
    page = visit(site, playground_path())
    page.locator(".timings summary").click()
    steps = page.get_by_role("list", name="Where the time went").get_by_role("listitem")
    expect(steps.filter(has_text="index search")).to_contain_text("ms")
    shares = steps.locator(".meter").evaluate_all("all => all.map(each => parseFloat(each.style.width))")
    assert len(shares) >= 3
    assert sum(shares) == pytest.approx(100)


@pytest.mark.slow
def test_a_passage_is_judged_and_the_score_shows_it(visit: Opened, changeable: Site) -> None:
    page = visit(changeable, playground_path().replace("docs", "default"), key=changeable.key)
    feedback = page.get_by_role("group", name="Feedback on the passage")
    part = page.get_by_role("article", name="The chosen passage").locator(".legend")
    expect(part).not_to_contain_text("feedback")
    feedback.get_by_role("button", name="Used").click()
    expect(feedback.get_by_role("button", name="Used")).to_have_attribute("aria-pressed", "true")
    expect(part).to_contain_text("feedback 0.150")
    feedback.get_by_role("button", name="Wrong").click()
    expect(feedback.get_by_role("button", name="Wrong")).to_have_attribute("aria-pressed", "true")
    expect(feedback.get_by_role("button", name="Used")).to_have_attribute("aria-pressed", "false")
    feedback.get_by_role("button", name="Wrong").click()
    expect(feedback.locator("[aria-pressed='true']")).to_have_count(0)
    with connect(changeable.address, api_key=changeable.key) as engine:
        assert engine.search.list_feedback().feedback == ()


def test_passages_show_their_trust_and_can_be_required_to_have_it(visit: Opened, changeable: Site) -> None:
    with connect(changeable.address, api_key=changeable.key) as engine:
        tip = NewDocument("Restore a backup with one command.", key="tip", origin="web")
        engine.add([tip], source="web", wait=True)
    page = visit(changeable, playground_path().replace("docs", "default"), key=changeable.key)
    row = page.locator(".candidate", has_text="web / tip")
    expect(row).to_contain_text("untrusted")
    row.click()
    expect(page.get_by_role("article", name="The chosen passage")).to_contain_text("untrustedfrom a web page")
    page.get_by_role("button", name="Options", exact=True).click()
    page.get_by_role("group", name="Least trust").get_by_role("button", name="Standard").click()
    expect(row).to_contain_text("Below trust")
    assert "min_trust=standard" in page.url
    page.get_by_role("button", name="Copy as code").click()
    expect(page.get_by_role("dialog")).to_contain_text('min_trust="standard"')


@pytest.mark.slow
def test_a_follow_up_begins_with_the_window_before(visit: Opened, site: Site) -> None:
    page = visit(site, playground_path(max_tokens=2048))
    expect_candidates(page)
    page.get_by_label("Keep the last window").check()
    page.get_by_label("Question", exact=True).fill("how are chats stored?")
    page.keyboard.press("Enter")
    plan = page.get_by_role("status").filter(has_text="stand unchanged at the beginning")
    expect(plan).to_be_visible()
    assert parse_number(plan.locator("b").inner_text()) > 0
    expect(page.locator(".candidate", has_text="kept from the previous window").first).to_be_visible()
    page.reload()
    expect(plan).to_be_visible()
    page.get_by_label("Keep the last window").uncheck()
    expect(plan).to_have_count(0)


def test_the_window_is_read_as_the_model_gets_it(visit: Opened, site: Site) -> None:
    page = visit(site, playground_path(max_tokens=2048, view="text"))
    text = page.get_by_role("region", name="The window as the model gets it")
    body = {"query": QUESTION, "collection": "docs", "max_tokens": 2048, "budget_query": QUESTION}
    answer = page.request.post(
        f"{site.address}/api/v1/explain",
        data={**body, "reserved_tokens": 512},
        headers={"Origin": site.address},
    )
    expect(text).to_be_visible()
    assert text.text_content() == answer.json()["text"]
    text.locator(".piece").nth(1).click()
    expect(text.locator(".piece.on")).to_have_count(1)
    expect(page.get_by_role("article", name="The chosen passage")).to_contain_text("[2]")
    assert violations(page) == []
    page.get_by_role("group", name="Show the window as").get_by_role("button", name="Map").click()
    expect(page.locator(".map .block").nth(1)).to_have_attribute("aria-pressed", "true")


def test_settings_are_kept_and_compared_side_by_side(visit: Opened, site: Site) -> None:
    page = visit(site, playground_path(max_tokens=1024))
    page.get_by_label("Compare with").select_option("kept")
    compared = page.get_by_role("region", name="Comparison")
    expect(compared).to_contain_text("The settings are the same")
    page.get_by_role("button", name="Options", exact=True).click()
    page.get_by_role("group", name="Find by").get_by_role("button", name="Words", exact=True).click()
    page.get_by_role("slider", name="Budget").press("ArrowRight")
    changes = compared.get_by_role("list", name="What differs").get_by_role("listitem")
    expect(changes).to_have_text(
        [
            "budget: 2,048 here, 1,024 there",
            "kept for the answer: 512 here, 256 there",
            "found by: keyword here, both there",
        ]
    )
    here = compared.get_by_role("region", name="Window of These settings")
    expect(here.locator(".block:not(.shared)").first).to_be_visible()
    expect(here).to_contain_text("of 1,5")
    page.reload()
    expect(changes).to_have_count(3)
    assert violations(page) == []


@pytest.mark.slow
def test_candidates_are_sorted(visit: Opened, site: Site) -> None:
    page = visit(site, playground_path(max_tokens=1024))
    page.get_by_role("button", name="Tokens", exact=True).click()
    token_cells = page.locator(".candidate:not(.candidate-heads) .tokens")
    expect(token_cells.first).not_to_have_text("\N{EN DASH}")
    tokens = [
        parse_number(text) for text in token_cells.all_inner_texts() if text not in {"\N{EN DASH}", "0"}
    ]
    assert len(tokens) > 1
    assert tokens == sorted(tokens, reverse=True)
    page.get_by_role("button", name="Status", exact=True).click()
    glyphs = page.locator(".candidate:not(.candidate-heads) .status").all_inner_texts()
    assert glyphs[0] == "In the window"
    assert glyphs[-1] != "In the window"


@pytest.mark.parametrize("language", ["Python", "curl", pytest.param("CLI", marks=pytest.mark.slow)])
def test_copied_code_gives_the_same_window(visit: Opened, example: Site, language: str) -> None:
    condition = {"field": "kind", "exists": True}
    options = "view=text&retrievers=keyword&profile=multiplicative&min_trust=standard&system=Be+brief."
    address = f"{playground_path(max_tokens=900).replace('docs', 'default')}&{options}&as_of=2031-01-01T00:00"
    page = visit(example, f"{address}&filter={quote(json.dumps(condition))}", key=example.key)
    text = page.get_by_role("region", name="The window as the model gets it")
    expect(text).to_be_visible()
    page.get_by_role("button", name="Copy as code").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name=language, exact=True).click()
    printed = run_code(language, dialog.locator("pre").inner_text(), example.key or "")
    window = json.loads(printed)["text"] if language == "curl" else printed
    assert window.strip() == (text.text_content() or "").strip() != ""


def run_code(language: str, code: str, key: str) -> str:
    """What copied code prints."""
    programs = Path(sys.executable).parent
    environment = {
        **os.environ,
        "KEY": key,
        "CONSPECTUS_API_KEY": key,
        "PATH": f"{programs}:{os.environ['PATH']}",
    }
    python = [sys.executable, "-c", code.replace("csp_...", key)]
    command = python if language == "Python" else ["bash", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_same_settings_are_seen_as_another_user(visit: Opened, example: Site) -> None:
    address = playground_path(max_tokens=1024, retrievers="keyword").replace("docs", "default")
    page = visit(example, address, key=example.key)
    page.get_by_label("seen by").select_option("bob")
    expect(page.get_by_role("status").first).to_contain_text("You are seeing as bob")
    expect(page.get_by_role("region", name="Window of bob")).to_contain_text("of 761 tokens")
    page.get_by_role("link", name="Change the settings in the Playground").click()
    expect_candidates(page)
    expect(page.get_by_label("Budget", exact=True).first).to_have_value("1,024")


def test_single_keys_can_be_switched_off(visit: Opened, site: Site) -> None:
    page = visit(site, playground_path())
    expect_candidates(page)
    page.keyboard.press("?")
    page.get_by_label("Keys act alone").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("]")
    expect(page.get_by_label("Budget", exact=True).first).to_have_value("2,048")
    page.get_by_role("button", name="Help").click()
    page.get_by_label("Keys act alone").check()
    page.keyboard.press("Escape")
    page.keyboard.press("]")
    expect(page.get_by_label("Budget", exact=True).first).to_have_value("4,096")
    page.keyboard.press("c")
    expect(page.get_by_label("Compare with")).to_be_focused()


def test_keys_move_through_candidates_and_budgets(visit: Opened, site: Site) -> None:
    page = visit(site, playground_path())
    expect_candidates(page)
    rank = page.locator('.candidate[aria-current="true"] .rank')
    first = parse_number(rank.inner_text())
    page.keyboard.press("j")
    expect(rank).to_have_text(str(first + 1))
    page.keyboard.press("]")
    expect(page.get_by_label("Budget", exact=True).first).to_have_value("4,096")


def test_an_empty_store_says_how_to_fill_it(visit: Opened, empty: Site) -> None:
    page = visit(empty, "/playground")
    expect(page.get_by_role("heading", name="Nothing is stored yet")).to_be_visible()
    assert violations(page) == []


def test_an_error_says_what_is_wrong(visit: Opened, site: Site) -> None:
    page = visit(site, playground_path(filter=quote('{"field": "nothing"}')))
    expect(page.get_by_role("alert")).to_contain_text("Could not load the window")


def test_a_key_is_asked_for_once(visit: Opened, locked: Site) -> None:
    page = visit(locked, "/playground")
    page.get_by_label("API key").fill("csp_wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("not valid")
    page.get_by_label("API key").fill(locked.key or "")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Nothing is stored yet")).to_be_visible()
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("API key")).to_be_visible()
    page.reload()
    expect(page.get_by_label("API key")).to_be_visible()


@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "narrow"])
def test_it_is_accessible_at_any_width(visit: Opened, site: Site, narrow: bool) -> None:
    page = visit(site, playground_path(compare=4096), narrow=narrow)
    page.get_by_role("button", name="Options", exact=True).click()
    page.locator(".timings summary").click()
    page.get_by_role("button", name="Add a condition").click()
    page.get_by_label("Field 1").select_option("metadata")
    expect_candidates(page)
    assert not scrolls_sideways(page)
    assert violations(page) == []
