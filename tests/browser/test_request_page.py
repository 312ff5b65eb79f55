"""Merge requests in the page: opened, talked about, approved by another person, and merged."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PICTURES, WRITES_PICTURES, needs_browser, opened
from tests.browser.library import HOSTILE, RETITLE, make_library
from tests.depth import IS_TORTURE
from tests.http.serving import Served, served, single

pytestmark = needs_browser

POLICY = """
version: 1
groups: { people: [ada, lin], readers: [eve] }
protected_branches: [main]
required_approvals: { main: 1 }
rules:
  - { id: read, allow: { actors: { group: people }, actions: [read] } }
  - { id: readers, allow: { actors: { group: readers }, actions: [read] } }
  - id: write
    allow:
      { actors: { group: people }, actions: [change, merge_request], branch_scope: unprotected }
  - id: merge
    allow: { actors: { group: people }, actions: [branch_create, branch_merge, merge_approve] }
"""
ROW = 'query r() { match { $p: Person { slug: "p2" } } return { $p.name, $p.title } }'


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A library whose main takes nothing that another person has not approved."""
    path = make_library(tmp_path_factory.mktemp("ruled") / "graph")
    tokens = {name: name for name in ("ada", "lin", "eve")}
    with served(single(path, tokens=tokens, policy_text=POLICY)) as server:
        yield server


@pytest.fixture
def visit(browser: Browser, ruled: Served) -> Callable[[str, str], opened]:
    """The workbench as somebody sees it."""

    def visit(name: str, path: str) -> opened:
        start = opened(browser, f"{ruled.url}/#token={name}")
        start.then = path
        return start

    return visit


def draw(page: Page, name: str) -> None:
    if WRITES_PICTURES:
        page.wait_for_timeout(400)
        page.screenshot(path=PICTURES / f"{name}.png", animations="disabled")


def test_a_request_is_opened_talked_about_approved_by_another_person_and_merged(
    visit: Callable[[str, str], opened], ruled: Served
) -> None:
    with visit("lin", "#/review?branch=review%2Ftitles") as lin:
        lin.get_by_role("button", name="Open a request").click()
        lin.get_by_label("Title", exact=True).fill("New titles")
        lin.get_by_label("Description").fill("Two people asked for them.")
        lin.get_by_label("Reviewers").fill("ada")
        lin.keyboard.press("Enter")
        expect(lin.locator(".summary h2")).to_contain_text("#1 New titles")
        expect(lin.locator(".verdicts")).to_contain_text("1 approval needed, 1 missing")
        expect(lin.locator(".verdicts")).to_contain_text("may approve: ada")
        lin.get_by_role("button", name="Approve").click()
        expect(lin.locator(".verdicts")).to_contain_text("(does not count)")
        lin.get_by_label("name: review/titles").check()
        lin.get_by_label("title: review/titles").check()
        expect(lin.locator(".checks")).to_contain_text("1 approval missing.")
        expect(lin.get_by_role("button", name="Merge", exact=True)).to_be_disabled()

        with visit("ada", "#/review") as ada:
            ada.get_by_role("link", name="New titles").click()
            ada.get_by_role("tab", name="Changes").click()
            ada.get_by_label("Comment on Person p1 title", exact=True).click()
            expect(ada.get_by_label("Comment", exact=True)).to_be_focused()
            ada.keyboard.type("Why principal?")
            ada.get_by_role("button", name="Comment", exact=True).click()
            expect(ada.locator(".talk")).to_contain_text("Person · p1 · title Why principal?")
            expect(ada.get_by_label("Comment on Person p1 title", exact=True)).to_have_text("✎ 1")
            ada.get_by_role("button", name="Approve").click()
            expect(ada.locator(".verdicts")).to_contain_text("all there")
            draw(ada, "request")

        with ruled.client("lin") as client:  # what was approved is no longer what is there
            client.mutate(RETITLE, params={"s": "p7", "t": "Late"}, branch="review/titles")
        lin.get_by_role("button", name="Preview again").click()
        lin.get_by_label("Comment", exact=True).fill(f"It is what she does. {HOSTILE[0]}")
        lin.get_by_role("button", name="Comment", exact=True).click()
        expect(lin.locator(".verdicts")).to_contain_text("before the branch changed")
        expect(lin.locator(".talk")).to_contain_text(f"what she does. {HOSTILE[0]}")
        expect(lin.locator(".checks")).to_contain_text("1 approval missing.")
        with ruled.client("ada") as client:
            client.post("/merge-requests/1/approvals", {})
        lin.get_by_label("Comment", exact=True).fill("Thanks.")
        lin.get_by_role("button", name="Comment", exact=True).click()
        expect(lin.locator(".verdicts")).to_contain_text("all there")
        lin.get_by_role("button", name="Merge", exact=True).click()
        expect(lin.locator(".summary h2 .chip")).to_have_text("merged")
        assert lin.evaluate("window.hacked") is None

    with ruled.client("ada") as client:
        (row,) = client.rows(ROW)
    assert row == {"p.name": "Samuel Hill", "p.title": "Editor"}


@pytest.mark.skipif(not IS_TORTURE, reason="part of make torture")
def test_who_may_not_merge_or_comment_reads_the_request_and_is_told_why(
    visit: Callable[[str, str], opened], ruled: Served
) -> None:
    with ruled.client("lin") as client:
        client.post("/branches", {"name": "small"})
        client.mutate(RETITLE, params={"s": "p9", "t": "Small"}, branch="small")
        number = client.post("/merge-requests", {"source": "small", "title": "Small"}).json()[
            "number"
        ]

    with visit("eve", f"#/review?request={number}") as eve:
        expect(eve.locator(".checks")).to_contain_text("You may review here, not merge.")
        expect(eve.locator(".changes")).to_contain_text("Small")
        for name in ("Approve", "Close", "Comment", "Open a request"):
            expect(eve.get_by_role("button", name=name, exact=True)).to_have_count(0)

    with visit("lin", f"#/review?request={number}") as lin:
        lin.get_by_label("Comment", exact=True).fill("Still here?")
        with ruled.client("ada") as client:  # meanwhile
            client.post(f"/merge-requests/{number}/close", {"text": "not now"})
        lin.get_by_role("button", name="Ask for changes").click()
        expect(lin.locator(".problem")).to_contain_text("closed")
        expect(lin.get_by_label("Comment", exact=True)).to_have_value("Still here?")
        expect(lin.locator(".talk")).to_contain_text("not now")
        lin.get_by_role("button", name="Open again").click()
        expect(lin.locator(".summary h2 .chip")).to_have_text("open")
