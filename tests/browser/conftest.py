"""One browser, one server, one graph with a past, for everything that a person does in the page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from omnigraph.server.workbench import read_assets
from tests.browser.library import make_library
from tests.docs_blocks import ROOT
from tests.http.serving import Served, served, single

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PICTURES = ROOT / "docs" / "guides" / "workbench"
WRITES_PICTURES = os.environ.get("OMNIGRAPH_PICTURES") == "write"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
]

WAIT_MS = 30_000
"""How long a page may take on a machine that has other things to do."""
expect.set_options(timeout=WAIT_MS)

needs_browser = [
    pytest.mark.slow,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(
        CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium"
    ),
    pytest.mark.skipif(not read_assets(), reason="needs the workbench: make ui"),
]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Gone with the last page: Playwright keeps an event loop running in this thread meanwhile."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of a graph that tests read, each writing only to branches of its own."""
    path = make_library(tmp_path_factory.mktemp("library") / "graph")
    with served(single(path)) as server:
        yield server


@pytest.fixture
def page(browser: Browser, library: Served) -> Iterator[Page]:
    """A page of the workbench. The test fails if it broke its security policy or had an error."""
    with opened(browser, library.url) as page:
        yield page


class opened:  # noqa: N801 - used like a function
    """A fresh page at an address, whose faults are collected."""

    def __init__(self, browser: Browser, url: str, *, scheme: str = "light") -> None:
        self._context = browser.new_context(
            viewport={"width": 1280, "height": 800},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        self._context.add_init_script(
            "addEventListener('securitypolicyviolation', event => "
            "console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI))"
        )
        self.page = self._context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.faults: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on(
            "console",
            lambda message: self.faults.append(message.text) if "policy:" in message.text else None,
        )
        self.page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))
        self._url = url
        self.then = ""
        """Where to go once the token that the address carried is taken."""

    def __enter__(self) -> Page:
        self.page.goto(self._url)
        if self.then:
            self.page.evaluate("where => { location.hash = where }", self.then)
        return self.page

    def __exit__(self, *failure: object) -> None:
        self._context.close()
        if failure[0] is None:
            assert self.faults == []
            assert self.hosts == {self._url.split("/")[2]}


@pytest.fixture
def picture(page: Page) -> Callable[[str], None]:
    """Writes a screenshot for the docs, when `make pictures` asks for it."""

    def write(name: str) -> None:
        if WRITES_PICTURES:
            PICTURES.mkdir(exist_ok=True)
            page.wait_for_timeout(400)
            page.screenshot(path=PICTURES / f"{name}.png", animations="disabled")

    return write


def type_query(page: Page, text: str) -> None:
    """Replace what the editor has, as a person pastes it."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(text)
