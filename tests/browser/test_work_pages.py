"""Explore, History, Review, Load and Admin: the main job of each page, as a person does it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, Page, expect

import omnigraph as og
from tests.branch.people import change, new_people
from tests.browser.conftest import needs_browser, opened, type_query
from tests.browser.contrast import FAINT_TEXTS
from tests.browser.library import RETITLE, make_library
from tests.depth import IS_TORTURE
from tests.http.serving import Served, served, single

pytestmark = needs_browser

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")

TITLE = 'query t() { match { $p: Person { slug: "p0" } } return { $p.title } }'
ROW = 'query r() { match { $p: Person { slug: "p2" } } return { $p.name, $p.title } }'
DOCUMENTS = """node Doc {
    slug: String @key  body: String @index  vector: Vector(64)? @embed("body")
}"""
BOTH = ("main", "review/titles")
BAD = """Slug,Full Name,Title,Joined
n1,New One,Engineer,2026-01-02
n2,New Two,Writer,not a date
,No Key,Writer,2026-01-02
"""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Served]:
    """A server of a library that one test may change as it likes."""
    with served(single(make_library(tmp_path / "graph"))) as server:
        yield server


def run_query(page: Page, text: str) -> None:
    page.get_by_role("link", name="Query").click()
    type_query(page, text)
    expect(page.locator(".status")).to_contain_text("no mistakes")
    page.get_by_role("button", name="Run").click()


def drop(page: Page, selector: str, file: Path) -> None:
    """Drop a file somewhere, as a hand does."""
    made = page.evaluate_handle(
        """([name, text]) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([text], name));
            return transfer;
        }""",
        [file.name, file.read_text()],
    )
    for event in ("dragover", "drop"):
        page.dispatch_event(selector, event, {"dataTransfer": made})


def count_nodes(page: Page) -> int:
    return int(page.locator(".canvas").get_attribute("data-nodes") or 0)


def test_a_node_is_found_by_words_and_expanded(page: Page, picture: Callable[[str], None]) -> None:
    page.get_by_role("link", name="Explore").click()
    page.get_by_label("Type", exact=True).select_option("Person")
    page.get_by_label("Words", exact=True).fill("knuth")
    page.get_by_role("button", name="Search").click()
    page.locator(".found button", has_text="Knuth").first.click()
    expect(page.locator(".card")).to_contain_text("Neighbours")
    expect(page.locator(".canvas")).to_have_attribute("data-nodes", "1")

    page.get_by_label("Expand Wrote out").click()
    expect(page.locator(".card")).to_contain_text("2 of 2")
    page.get_by_label("Expand WorksAt out").click()
    expect(page.locator(".canvas")).to_have_attribute("data-nodes", "4")
    page.locator(".card button.link", has_text="On ").first.click()
    page.get_by_label("Expand Cites out").click()
    expect(page.locator(".card")).to_contain_text("In the picture")
    page.locator(".canvas[data-still][data-nodes='6']").wait_for()
    picture("explore")

    page.get_by_label("Paper", exact=True).uncheck()
    expect(page.locator(".canvas")).to_have_attribute("data-nodes", "2")
    page.get_by_role("button", name="Show commits").click()
    expect(page.locator(".card table")).to_contain_text("title")


def test_documents_are_found_by_meaning_and_by_both(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "local")
    texts = {"soup": "A recipe for soup with leeks", "bolts": "How to tighten bolts", "tea": "Tea"}
    with og.init(tmp_path / "graph", schema=DOCUMENTS, durability="process") as graph:
        graph.load(
            [{"type": "Doc", "data": {"slug": s, "body": b}} for s, b in texts.items()],
            mode="append",
        )
    with (
        served(single(tmp_path / "graph")) as server,
        opened(browser, f"{server.url}/#/explore") as page,
    ):
        expect(page.locator(".found button")).to_have_count(3)
        for how in ("meaning", "full text and meaning"):
            by = page.get_by_label("Search by").locator("option", has_text=how).first
            page.get_by_label("Search by").select_option(by.get_attribute("value"))
            page.get_by_label("Words", exact=True).fill("soup recipe")
            with page.expect_response(lambda each: each.url.endswith("/query")):
                page.get_by_role("button", name="Search").click()
            expect(page.locator(".found button").first).to_contain_text("soup")
        page.locator(".found button").first.click()
        expect(page.locator(".card")).to_contain_text("A recipe for soup")


def test_time_travel_shows_what_was_and_compares_two_states(
    page: Page, picture: Callable[[str], None]
) -> None:
    page.get_by_role("link", name="History").first.click()
    commits = page.locator(".commits li")
    expect(commits).to_have_count(8)
    expect(page.locator(".commits circle")).to_have_count(8)
    expect(page.locator(".changes")).to_contain_text("Sam B. Hill")
    page.locator(".commits li", has_text="review/titles").first.get_by_text("from").click()
    expect(page.locator(".compared")).to_contain_text("Nova Star")
    picture("history")
    page.get_by_role("button", name="Against its parent").click()

    slider = page.get_by_label("Commit", exact=True)
    slider.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".counts")).to_contain_text("Person 43")
    page.get_by_role("button", name="Query this state").click()
    expect(page.locator(".banner.past")).to_be_visible()
    run_query(page, TITLE)
    expect(page.locator(".grid .rows .row")).not_to_contain_text("Countess")
    page.get_by_text("Back to now").click()
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".grid .rows .row")).to_contain_text("Countess")


def test_a_conflict_is_decided_property_by_property_and_merged(
    browser: Browser, own: Served
) -> None:
    with opened(browser, f"{own.url}/#/review?branch=review%2Ftitles") as page:
        expect(page.locator(".checks")).to_contain_text("1 conflict, 0 decided")
        merge = page.get_by_role("button", name="Merge", exact=True)
        expect(merge).to_be_disabled()
        page.get_by_label("name: review/titles").check()
        page.get_by_label("title: main").check()
        expect(page.locator(".checks")).to_contain_text("1 conflict, 1 decided")

        with own.client() as client:  # meanwhile, main goes on
            client.mutate(RETITLE, params={"s": "p5", "t": "Meanwhile"})
        merge.click()
        expect(page.locator(".note.warn")).to_contain_text("main changed after this preview")
        expect(page.locator(".checks")).to_contain_text("1 conflict, 1 decided")
        page.route("**/branches/merge", lambda route: route.abort(), times=1)
        merge.click()
        expect(page.locator(".problem")).to_contain_text("does not answer")
        expect(page.locator(".checks")).to_contain_text("1 conflict, 1 decided")
        merge.click()
        expect(page.locator(".note.good")).to_contain_text("Merged")
        expect(page.locator(".checks")).to_contain_text("no conflicts")

    with own.client() as client:
        heads = [client.get("/log", branch=each, limit=2).json()["commits"] for each in BOTH]
        (row,) = client.rows(ROW)
        (titled,) = client.rows(ROW.replace("p2", "p5"))
        (added,) = client.rows(ROW.replace("p2", "nova"))
    assert row == {"p.name": "Samuel Hill", "p.title": "Chief"}
    (merge, meanwhile), (head, _) = heads
    assert head["graph_commit_id"] == merge["merged_parent_commit_id"], "the branch got a commit"
    assert meanwhile["graph_commit_id"] == merge["parent_commit_id"], "it was more than one commit"
    assert titled["p.title"] == "Meanwhile"
    assert added["p.name"] == "Nova Star"


@pytest.mark.skipif(not IS_TORTURE, reason="part of make torture")
def test_a_choice_that_breaks_a_rule_is_told_beside_it_before_the_merge(
    browser: Browser, tmp_path: Path
) -> None:
    people = new_people(tmp_path / "graph")
    people.create_branch("b")
    change(people, "email", "b", name="alice", email="a@x")
    change(people, "age", "b", name="alice", age=31)
    change(people, "age", name="alice", age=32)
    change(people, "email", name="bob", email="a@x")
    people.close()
    with (
        served(single(tmp_path / "graph")) as server,
        opened(browser, f"{server.url}/#/review?branch=b") as page,
    ):
        page.get_by_label("age: main").check()
        expect(page.get_by_label("email: b")).to_be_checked()  # only the branch changed it
        merge = page.get_by_role("button", name="Merge", exact=True)
        told = page.locator("fieldset.decision [role=alert]")
        expect(told).to_contain_text("'bob' has it")
        expect(page.locator(".checks")).to_contain_text("rules of the schema broken")
        expect(merge).to_be_disabled()
        page.get_by_label("email: main").check()
        expect(told).to_have_count(0)
        merge.click()
        expect(page.locator(".note.good")).to_contain_text("Merged")


def test_a_review_shows_changes_and_draws_them(page: Page, picture: Callable[[str], None]) -> None:
    page.get_by_label("Branch", exact=True).select_option("review/titles")
    page.get_by_role("link", name="Review", exact=True).first.click()
    page.get_by_label("name: review/titles").check()
    page.get_by_label("title: main").check()
    picture("review")
    page.get_by_role("tab", name="Changes").click()
    expect(page.locator(".changes tbody.insert").last).to_contain_text("Nova Star")
    page.get_by_role("tab", name="Picture").click()
    page.locator(".canvas[data-still]").wait_for()
    assert count_nodes(page) > 5
    picture("changes")


def test_a_csv_with_bad_rows_is_refused_by_the_dry_run_and_loads_once_it_is_right(
    browser: Browser, own: Served, tmp_path: Path
) -> None:
    bad, good = tmp_path / "bad" / "people.csv", tmp_path / "people.csv"
    bad.parent.mkdir()
    bad.write_text(BAD)
    good.write_text("".join(BAD.splitlines(keepends=True)[:2]))
    firms = tmp_path / "firms.parquet"
    named = {"slug": ["f1", "f2"], "name": ["First & Co", "Second"], "city": ["Oslo", None]}
    pq.write_table(pa.table(named), firms)
    with opened(browser, f"{own.url}/#/load") as page:
        drop(page, ".drop", bad)
        page.get_by_label("Type of people.csv").select_option("Person")
        page.get_by_label("Column Full Name").select_option("name")
        load = page.get_by_role("button", name="Load as one commit")
        page.get_by_role("button", name="Dry run").click()
        expect(page.locator(".bad-rows li")).to_have_count(2)
        expect(page.locator(".bad-rows")).to_contain_text("people.csv:3")
        expect(load).to_be_disabled()

        page.get_by_label("Files", exact=True).set_input_files([good, firms])
        page.get_by_label("Column Full Name").select_option("name")
        page.get_by_label("Type of firms.parquet").select_option("Company")
        page.route("**/load/files*", lambda route: route.abort(), times=1)
        page.get_by_role("button", name="Dry run").click()
        expect(page.locator(".problem")).to_contain_text("your files and choices are kept here")
        page.get_by_role("button", name="Dry run").click()
        expect(page.locator(".chip", has_text="ready to load")).to_be_visible()
        load.click()
        expect(page.locator(".note.good")).to_contain_text("Loaded 3 rows into main")

    with own.client() as client:
        (row,) = client.rows(ROW.replace("p2", "n1"))
        found = client.rows('query c() { match { $c: Company { slug: "f1" } } return { $c.name } }')
    assert row == {"p.name": "New One", "p.title": "Engineer"}
    assert found == [{"c.name": "First & Co"}]


def test_the_pages_of_loads_and_upkeep_say_what_is_there(
    page: Page, picture: Callable[[str], None], tmp_path: Path
) -> None:
    file = tmp_path / "people.csv"
    file.write_text(BAD)
    page.get_by_role("link", name="Load").click()
    page.get_by_label("Files", exact=True).set_input_files(file)
    page.get_by_label("Column Full Name").select_option("name")
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator(".bad-rows li")).to_have_count(2)
    picture("load")

    page.get_by_role("link", name="Admin").click()
    expect(page.locator(".admin")).to_contain_text("omnigraph_http_requests_total")
    expect(page.locator(".admin")).to_contain_text("node:Person")
    picture("admin")


def test_everything_is_reached_by_keyboard_and_fits_at_200_percent(
    browser: Browser, library: Served
) -> None:
    with opened(browser, library.url, scheme="dark") as page:
        page.set_viewport_size({"width": 640, "height": 400})  # 1280 × 800 at 200 %
        for name in ("Overview", "Query", "Explore", "History", "Review", "Load", "Admin"):
            page.get_by_role("link", name=name, exact=True).first.focus()
            page.keyboard.press("Enter")
            expect(page.locator("nav a[aria-current]")).to_have_text(name)
            page.locator(".panel").first.wait_for()
            expect(page.get_by_label("Branch", exact=True)).to_be_visible()
            expect(page.get_by_role("button", name="◷ now")).to_be_visible()
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{name} scrolls sideways by {wide} pixels"
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                assert page.evaluate(FAINT_TEXTS) == [], f"{name}, {scheme}"
        page.get_by_role("button", name="◷ now").press("Enter")
        box = page.get_by_role("dialog", name="Time").bounding_box()
        assert box is not None
        assert box["x"] >= 0, "its left side is cut off"
        assert box["x"] + box["width"] <= 640, "its right side is cut off"
        page.keyboard.press("Escape")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert sum(map(int, ground[4:-1].split(","))) < 150  # dark
