"""Without a mouse: the main job of every page, by Tab, Enter, Space and the arrows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import needs_browser, opened
from tests.browser.library import RETITLE, make_library
from tests.depth import IS_TORTURE
from tests.http.serving import Served, served, single

pytestmark = needs_browser

IS_FOCUSED = """([selector, text]) => {
    const found = document.activeElement;
    const names = [found.textContent, found.getAttribute("aria-label"), found.value];
    return found.matches(selector) && names.some((each) => each?.includes(text));
}"""
PEOPLE = "query q() { match { $p: Person } return { $p.slug, $p.name } order { $p.slug } }"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path = make_library(tmp_path_factory.mktemp("keys") / "graph")
    with served(single(path)) as server:
        with server.client() as client:
            client.post("/branches", {"name": "keys"})
            client.mutate(RETITLE, params={"s": "p4", "t": "Typed"}, branch="keys")
        yield server


def go_to(page: Page, selector: str, text: str = "", most: int = 60) -> None:
    """Press Tab until something is focused, as a person does who has only the keys."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate(IS_FOCUSED, [selector, text]):
            return
    raise AssertionError(f"Tab does not reach {selector} {text}")


def turn_to(page: Page, name: str) -> None:
    page.evaluate("document.activeElement?.blur()")
    go_to(page, "nav a", name)
    page.keyboard.press("Enter")
    expect(page.locator("nav a[aria-current]")).to_have_text(name)


@pytest.mark.skipif(not IS_TORTURE, reason="part of make torture")
def test_types_are_explored_and_neighbours_expanded_by_keys(browser: Browser, own: Served) -> None:
    with opened(browser, own.url) as page:
        page.locator(".diagram .type").first.wait_for()
        go_to(page, ".diagram .type", "Explore Person")
        page.keyboard.press("Enter")
        page.locator(".found button").first.wait_for()
        go_to(page, "input[type=search]")
        page.keyboard.type("knuth")
        page.keyboard.press("Enter")
        expect(page.locator(".found button").first).to_contain_text("Knuth")
        go_to(page, ".found button", "Knuth")
        page.keyboard.press("Enter")
        page.locator(".card h3").first.wait_for()
        go_to(page, ".card button", "Expand Wrote out", 120)
        page.keyboard.press("Enter")
        expect(page.locator(".card")).to_contain_text("2 of 2")

        turn_to(page, "Admin")
        page.locator(".admin table").first.wait_for()
        go_to(page, "button", "Verify")
        page.keyboard.press("Enter")
        expect(page.locator(".admin .list .chip").first).to_contain_text("succeeded")


def test_a_query_is_written_run_and_its_rows_opened_by_keys(browser: Browser, own: Served) -> None:
    with opened(browser, f"{own.url}/#/query") as page:
        page.locator(".cm-content").wait_for()
        go_to(page, ".editor")
        page.keyboard.press("Control+a")
        page.keyboard.press("Delete")
        page.keyboard.insert_text(PEOPLE)
        page.keyboard.press("Control+Enter")
        expect(page.locator(".grid .rows .row").first).to_contain_text("h0")
        go_to(page, ".grid")  # the editor does not hold the Tab key
        for _ in range(3):
            page.keyboard.press("ArrowDown")
        expect(page.locator(".grid .current .number")).to_have_text("3")
        page.keyboard.press("Enter")
        expect(page.get_by_label("Row", exact=True)).to_contain_text("h2")
        page.keyboard.press("Escape")
        expect(page.get_by_label("Row", exact=True)).to_have_count(0)
        for _ in range(30):
            page.keyboard.press("ArrowDown")
        expect(page.locator(".grid .current")).to_be_in_viewport()

        turn_to(page, "History")
        page.locator(".commits li").first.wait_for()
        go_to(page, "input[type=range]", most=120)
        before = page.locator(".slider span").inner_text()
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
        expect(page.locator(".commits li").first).not_to_have_class("chosen")
        assert page.locator(".commits li.chosen").count() == 1, before


@pytest.mark.skipif(not IS_TORTURE, reason="part of make torture")
def test_a_branch_is_merged_and_a_file_loaded_by_keys(
    browser: Browser, own: Served, tmp_path: Path
) -> None:
    file = tmp_path / "people.json"
    file.write_text('{"type": "Person", "data": {"slug": "k1", "name": "By Keys"}}\n')
    with opened(browser, f"{own.url}/#/review?branch=keys") as page:
        expect(page.locator(".checks")).to_contain_text("no conflicts")
        go_to(page, "button.primary", "Merge")
        page.keyboard.press("Enter")
        expect(page.locator(".note.good")).to_contain_text("Merged")

        turn_to(page, "Load")
        go_to(page, "input[type=file]")
        page.get_by_label("Files", exact=True).set_input_files(file)  # the dialog of the system
        go_to(page, "button", "Dry run")
        page.keyboard.press("Enter")
        expect(page.locator(".chip", has_text="ready to load")).to_be_visible()
        go_to(page, "button.primary", "Load as one commit")
        page.keyboard.press("Enter")
        expect(page.locator(".note.good")).to_contain_text("Loaded 1 row")
