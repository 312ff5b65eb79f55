"""One browser, one server, one graph with a past, for everything that a person does in the page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

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

VIEWPORT: ViewportSize = {"width": 1280, "height": 800}
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
        _unused.clear()
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


class _Tab:
    """A page in a context of its own. To load the page is most of a test: it is used again."""

    def __init__(self, browser: Browser) -> None:
        self.context = browser.new_context(viewport=VIEWPORT)
        self.context.add_init_script(
            "addEventListener('securitypolicyviolation', event => "
            "console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI))"
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.faults: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on(
            "console",
            lambda message: self.faults.append(message.text) if "policy:" in message.text else None,
        )
        self.page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))

    def forget(self) -> None:
        """Leave nothing to the next test but what the browser has compiled."""
        self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear() }")
        self.page.goto("about:blank")
        self.context.clear_cookies()
        self.context.clear_permissions()
        self.page.set_viewport_size(VIEWPORT)
        self.faults.clear()
        self.hosts.clear()


_unused: list[_Tab] = []


class opened:  # noqa: N801 - used like a function
    """A page at an address that remembers nothing, whose faults are collected."""

    def __init__(self, browser: Browser, url: str, *, scheme: str = "light") -> None:
        self._tab = _unused.pop() if _unused else _Tab(browser)
        self.page = self._tab.page
        self.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        self._url = url
        self.then = ""
        """Where to go once the token that the address carried is taken."""

    def __enter__(self) -> Page:
        self.page.goto(self._url)
        if self.then:
            self.page.evaluate("where => { location.hash = where }", self.then)
        return self.page

    def __exit__(self, *failure: object) -> None:
        if failure[0] is not None:
            self._tab.context.close()
            return
        faults, hosts = list(self._tab.faults), set(self._tab.hosts)
        self._tab.forget()
        _unused.append(self._tab)
        assert faults == []
        assert hosts == {self._url.split("/")[2]}


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
