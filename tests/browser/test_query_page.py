"""Overview and Query: what a person sees first, and asks."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import needs_browser, opened, type_query
from tests.http.serving import Served, served, single

pytestmark = needs_browser

WRITERS = """query writers($year: I32) {
    match {
        $p: Person
        $p wrote $d
        $d.year > $year
    }
    return { $p.name, $d.title, $d.year }
    order { $d.year desc }
}
"""
ROWS_IN_VIEW = """(rows) => {
    const box = rows[0].closest(".grid").getBoundingClientRect();
    const head = rows[0].offsetHeight;
    return rows
        .filter((each) => each.getBoundingClientRect().top > box.top + head / 2)
        .filter((each) => each.getBoundingClientRect().bottom < box.bottom + 1)
        .map((each) => Number(each.getAttribute("aria-rowindex")));
}"""


def test_the_overview_shows_types_counts_branches_and_commits(
    page: Page, picture: Callable[[str], None]
) -> None:
    expect(page.locator(".diagram .type")).to_have_count(3)
    expect(page.locator(".diagram .edge")).to_have_count(4)
    expect(page.locator(".figures")).to_contain_text("106nodes")
    expect(page.get_by_text("review/titles").last).to_be_visible()
    expect(page.locator(".panel", has_text="Last commits").locator("li")).to_have_count(4)
    expect(page.locator(".panel", has_text="Indexes")).to_contain_text("Paper.abstract")
    expect(page.locator(".figures")).to_contain_text("upserver")
    picture("overview")


def test_a_query_is_completed_checked_run_and_drawn(
    page: Page, picture: Callable[[str], None]
) -> None:
    page.get_by_role("link", name="Query").click()
    type_query(page, "query q() { match { $p: Per")
    page.keyboard.press("Control+Space")
    expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text("Person")
    page.wait_for_timeout(100)  # the editor takes no choice that comes too soon to be meant
    page.keyboard.press("Enter")
    expect(page.locator(".cm-content")).to_contain_text("$p: Person")

    for start, wanted in (
        ("query q($year: I32) { match { $d: Paper $d.ti", "title"),
        ("query q($year: I32) { match { $d: Paper $d.year > $y", "$year"),
    ):
        type_query(page, start)
        page.keyboard.press("Control+Space")
        expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text(wanted)
        page.keyboard.press("Escape")

    type_query(page, WRITERS.replace("$d.title", "$d.titel"))
    expect(page.locator(".cm-lintRange-error")).to_have_text("titel")
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".problem")).to_contain_text("did you mean `title`?")

    type_query(page, WRITERS)
    expect(page.locator(".status")).to_contain_text("no mistakes")
    page.locator("input[name=year]").fill("2015")
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".answer")).to_contain_text("rows of commit")
    expect(page.locator(".grid .rows .row").first).to_contain_text("2024")
    expect(page.locator(".canvas")).to_have_attribute("data-nodes", re.compile(r"[1-9]\d"))
    page.wait_for_selector(".canvas[data-still]")
    picture("query")

    page.get_by_role("button", name="Explain").click()
    expect(page.locator(".tree").first).to_contain_text("expand")
    picture("plan")


def test_a_long_result_is_read_in_pages_as_it_scrolls(page: Page, library: Served) -> None:
    asked: list[int] = []
    page.on("request", lambda each: asked.append(1) if each.url.endswith("/query") else None)
    page.get_by_role("link", name="Query").click()
    product = "query all() { match { $a: Paper $b: Paper } return { $a.doi, $b.doi } }"
    type_query(page, product)
    expect(page.locator(".status")).to_contain_text("no mistakes")
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".grid")).to_have_attribute("aria-rowcount", "3600")
    assert page.locator(".grid .rows .row").count() < 60

    page.locator(".grid").evaluate("element => element.scrollTop = element.scrollHeight")
    expect(page.locator(".grid [aria-rowindex='3600']")).to_contain_text("10.1/")
    assert len(asked) <= 5  # the first page, the picture, and the one or two pages at the end


def test_the_last_of_very_many_rows_is_reached_and_keys_and_wheel_skip_none(page: Page) -> None:
    """A browser cuts elements that are as tall as this table: its scroll bar stands for more."""
    page.get_by_role("link", name="Query").click()
    names = "$a: Paper $b: Paper $c: Paper $d: Company"
    type_query(page, f"query many() {{ match {{ {names} }} return {{ $d.slug }} }}")
    expect(page.locator(".status")).to_contain_text("no mistakes")
    page.get_by_role("button", name="Run").click()
    grid, last = page.locator(".grid"), page.locator(".grid [aria-rowindex='648000']")
    expect(grid).to_have_attribute("aria-rowcount", "648000")
    grid.evaluate("element => element.scrollTop = element.scrollHeight")
    expect(last).to_be_in_viewport(ratio=0.9)
    expect(last).to_contain_text("c")

    grid.focus()
    page.keyboard.press("Home")
    expect(page.locator(".grid .current")).to_have_attribute("aria-rowindex", "1")
    for _ in range(3):
        seen = page.locator(".grid .rows .row").evaluate_all(ROWS_IN_VIEW)
        page.keyboard.press("PageDown")
        current = page.locator(".grid .current")
        expect(current).not_to_have_attribute("aria-rowindex", str(seen[0]))
        expect(current).to_be_in_viewport(ratio=0.9)
        assert page.locator(".grid .rows .row").evaluate_all(ROWS_IN_VIEW)[0] <= seen[-1] + 1
    page.keyboard.press("End")
    expect(last).to_be_in_viewport(ratio=0.9)
    page.keyboard.press("ArrowUp")
    expect(page.locator(".grid .current")).to_have_attribute("aria-rowindex", "647999")

    seen = page.locator(".grid .rows .row").evaluate_all(ROWS_IN_VIEW)
    grid.hover()
    page.mouse.wheel(0, -260)
    expect(page.locator(f".grid [aria-rowindex='{seen[0] - 10}']")).to_be_in_viewport(ratio=0.9)
    assert page.locator(".grid .rows .row").evaluate_all(ROWS_IN_VIEW)[0] == seen[0] - 10


def test_hostile_values_are_text(page: Page) -> None:
    page.get_by_role("link", name="Query").click()
    hostile = 'query h() { match { $p: Person $p.slug starts_with "h" } return { $p.name } }'
    type_query(page, hostile)
    expect(page.locator(".status")).to_contain_text("no mistakes")
    page.get_by_role("button", name="Run").click()

    rows = page.locator(".grid .rows")
    expect(rows).to_contain_text('<img src=x onerror="window.hacked=1">')
    expect(rows).to_contain_text("abc\\u202edef\\u200bghi")
    expect(rows).to_contain_text("<b>bold</b>")
    page.wait_for_selector(".canvas[data-still]")
    assert page.evaluate("window.hacked") is None
    assert page.locator(".grid img, .grid b, .grid script").count() == 0


def test_a_lost_connection_and_an_expired_token_lose_nothing(
    browser: Browser, library: Served
) -> None:
    graph = Path(library.serving.settings.graphs[0].uri)
    with (
        served(single(graph, tokens={"ada": "secret"})) as server,
        opened(browser, f"{server.url}/#token=secret") as page,
    ):
        expect(page.locator(".who")).to_contain_text("read-only")
        page.get_by_role("link", name="Query").click()
        type_query(page, WRITERS)
        expect(page.locator(".status")).to_contain_text("no mistakes")
        page.locator("input[name=year]").fill("2015")

        page.route("**/query", lambda route: route.abort())
        page.get_by_role("button", name="Run").click()
        expect(page.locator(".problem")).to_contain_text("does not answer")
        expect(page.locator(".cm-content")).to_contain_text("query writers")
        page.unroute("**/query")
        page.get_by_role("button", name="Try again").click()
        expect(page.locator(".grid .rows .row").first).to_contain_text("2024")

        page.evaluate("sessionStorage.setItem('omnigraph-token', 'expired')")
        page.reload()
        page.get_by_label("Bearer token").fill("secret")
        page.get_by_role("button", name="Go on").click()
        expect(page.locator(".cm-content")).to_contain_text("query writers")

        type_query(page, 'query w() { insert Company { slug: "x", name: "X" } }')
        expect(page.locator(".status")).to_contain_text("You may read here, not change.")
        expect(page.get_by_role("button", name="Run as one commit")).to_be_disabled()


def test_a_token_that_expires_is_asked_for_in_place_and_the_query_goes_on(
    browser: Browser, library: Served
) -> None:
    graph = Path(library.serving.settings.graphs[0].uri)
    with (
        served(single(graph, tokens={"ada": "secret"})) as server,
        opened(browser, f"{server.url}/#token=secret") as page,
    ):
        page.get_by_role("link", name="Query").click()
        type_query(page, WRITERS)
        page.locator("input[name=year]").fill("2015")
        refused = {"status": 401, "body": "{}", "content_type": "application/json"}
        page.route("**/query", lambda route: route.fulfill(**refused), times=1)
        page.get_by_role("button", name="Run").click()
        expect(page.locator("dialog")).to_contain_text("does not accept this token any more")
        expect(page.locator(".cm-content")).to_contain_text("query writers")
        page.get_by_label("Bearer token").fill("secret")
        page.keyboard.press("Enter")

        expect(page.locator(".grid .rows .row").first).to_contain_text("2024")
        expect(page.locator("input[name=year]")).to_have_value("2015")


def test_a_shared_address_brings_query_parameters_branch_and_time(
    browser: Browser, library: Served
) -> None:
    with opened(browser, f"{library.url}/#/query?at=tag%3Av1") as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        type_query(page, WRITERS)
        page.locator("input[name=year]").fill("2015")
        page.get_by_role("button", name="Share").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        shared = page.evaluate("navigator.clipboard.readText()")
        with page.expect_download() as saved:
            page.get_by_role("button", name="Save as .gq").click()

        assert saved.value.suggested_filename == "writers.gq"
        assert saved.value.path().read_text() == WRITERS
    assert "token" not in shared
    with opened(browser, shared) as other:
        expect(other.locator(".cm-content")).to_contain_text("query writers")
        expect(other.locator("input[name=year]")).to_have_value("2015")
        expect(other.locator(".banner.past")).to_contain_text("tag:v1")


def test_a_query_is_stored_completed_by_its_name_and_run_with_its_parameters(
    browser: Browser, library: Served, tmp_path: Path
) -> None:
    graph = Path(library.serving.settings.graphs[0].uri)
    with (
        served(single(graph, query_directory=tmp_path)) as server,
        opened(browser, f"{server.url}/#/query") as page,
    ):
        store = page.get_by_role("button", name="Store", exact=True)
        type_query(page, WRITERS.replace("$d.title", "$d.titel"))
        expect(page.locator(".status")).to_contain_text("1 mistake")
        expect(store).to_be_disabled()
        type_query(page, WRITERS)
        store.click()
        expect(page.locator(".status")).to_contain_text("Stored as writers.")
        expect(page.locator(".side")).to_contain_text("writers")
        type_query(page, WRITERS.replace(" desc", ""))
        store.click()
        expect(page.locator(".problem")).to_contain_text("'writers' is stored already")
        page.get_by_role("button", name="Replace writers").click()
        expect(page.locator(".status")).to_contain_text("Stored as writers.")

        type_query(page, "wri")
        page.keyboard.press("Control+Space")
        expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text("writersstored query")
        page.wait_for_timeout(100)  # the editor takes no choice that comes too soon to be meant
        page.keyboard.press("Enter")
        expect(page.locator(".write h2")).to_contain_text("Stored query writers")
        page.locator("input[name=year]").fill("2015")
        page.get_by_role("button", name="Run").click()
        expect(page.locator(".grid .rows .row").first).to_contain_text("2017")
    assert (tmp_path / "writers.gq").read_text() == WRITERS.replace(" desc", "")
