"""The page of a picture: one file that is dragged, zoomed and clicked, and asks nothing."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

import omnigraph as og
from tests.browser.conftest import PICTURES, WRITES_PICTURES, needs_browser
from tests.browser.library import HOSTILE
from tests.http.serving import Served

pytestmark = needs_browser

PLACE = "id => document.getElementById('picture').drawing.placeOnScreen(id)"


def test_a_picture_as_a_file_is_dragged_zoomed_and_clicked_and_asks_nothing(
    browser: Browser, library: Served, tmp_path: Path
) -> None:
    with og.open(Path(library.serving.settings.graphs[0].uri)) as graph:
        drawn = graph.picture()
        file = drawn.to_html(tmp_path / "picture.html")
    number = list(drawn.subgraph.nodes).index(("Person", "h0"))
    page = browser.new_page(viewport={"width": 1000, "height": 600})
    asked: list[str] = []
    faults: list[str] = []
    page.on("request", lambda each: asked.append(each.url.partition(":")[0]))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text))
    page.goto(file.as_uri())
    page.wait_for_selector(".canvas[data-still][data-nodes='106']")

    start = page.evaluate(PLACE, str(number))
    page.mouse.click(start["x"], start["y"])
    card = page.locator(".card")
    expect(card).to_contain_text(HOSTILE[0])
    assert page.locator("img").count() == 0
    page.get_by_label("Close").click()
    if WRITES_PICTURES:
        page.get_by_label("Zoom in").click()
        page.wait_for_timeout(400)
        firm = list(drawn.subgraph.nodes).index(("Company", "c1"))
        place = page.evaluate(PLACE, str(firm))
        page.mouse.click(place["x"], place["y"])
        page.wait_for_timeout(400)
        page.screenshot(path=PICTURES / "picture.png", animations="disabled")
        page.get_by_label("Close").click()
        page.get_by_label("Show all").click()
        page.wait_for_timeout(400)

    page.mouse.move(start["x"], start["y"])
    page.mouse.down()
    page.mouse.move(start["x"] + 90, start["y"] + 60, steps=3)
    page.mouse.up()
    moved = page.evaluate(PLACE, str(number))
    assert moved["x"] - start["x"] > 60
    assert moved["y"] - start["y"] > 30
    expect(card).to_be_hidden()  # a drag is no click

    page.get_by_label("Zoom in").click()
    page.wait_for_timeout(400)
    assert page.evaluate(PLACE, str(number)) != moved
    page.get_by_label("Company 3").uncheck()
    page.wait_for_selector(".canvas[data-still][data-nodes='103']")
    page.locator(".canvas").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(card).to_be_visible()

    assert page.evaluate("window.hacked") is None
    assert set(asked) == {"file", "blob"}  # itself, and the worker that it brings along
    assert faults == []
    page.close()
