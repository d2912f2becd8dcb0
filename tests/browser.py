"""A real browser for the tests: Debian's Chromium through playwright."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest


@cache
def _executable() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    return found


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Start a browser (playwright's ``Browser``), for several pages; it ends with the block."""
    playwright = pytest.importorskip("playwright.sync_api")
    executable = _executable()
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=executable,
            args=["--no-sandbox", "--disable-gpu", "--autoplay-policy=no-user-gesture-required", "--mute-audio"],
        )
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def chromium_page(
    browser: Any = None,
    *,
    offline: bool = False,
    dark: bool = False,
    width: int = 1280,
    height: int = 900,
    base_url: str | None = None,
    **context_options: Any,
) -> Iterator[Any]:
    """Open a page in a fresh context: nothing is kept from other pages.

    Parameters
    ----------
    browser : playwright.sync_api.Browser, optional
        What :func:`chromium` started; by default one is started for this page alone.
    offline : bool
        Cut the network off; whatever still asks for it is noted as an error.
    dark : bool
        Prefer the dark scheme.
    width, height : int
        Of the window, in CSS pixels.
    base_url, **context_options
        As for playwright's ``new_context``.

    Yields
    ------
    playwright.sync_api.Page
        Its attribute ``errors`` lists what the console and the scripts complained of; empty if nothing.
    """
    with contextlib.ExitStack() as stack:
        browser = browser or stack.enter_context(chromium())
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            base_url=base_url,
            **context_options,
        )
        stack.callback(context.close)
        context.set_default_timeout(15_000)
        page = context.new_page()
        page.errors = []
        page.on("console", lambda message: _note(page.errors, message))
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        if offline:
            context.set_offline(True)
            page.on("request", lambda request: _note_request(page.errors, request.url))
        yield page


def wait_until(page: Any, expression: str, seconds: float = 15.0) -> None:
    """Wait until a JavaScript expression is true; unlike playwright's own waiting, a page's policy cannot forbid it."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"never became true: {expression}"
        page.wait_for_timeout(30)


def _note(errors: list[str], message: Any) -> None:
    if message.type in ("error", "warning"):
        errors.append(f"{message.type}: {message.text}")


def _note_request(errors: list[str], url: str) -> None:
    if url.startswith(("http:", "https:", "ws:", "wss:")):
        errors.append(f"asks for {url}")


def axe_findings(page: Any, *rules: str) -> list[str]:
    """Return the serious and critical findings of the accessibility checker axe on the page as it is now.

    By default those of all its rules.
    """
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    chosen = {"runOnly": {"type": "rule", "values": rules}} if rules else {}
    found = axe.run(page, options={"resultTypes": ["violations"], **chosen}).response["violations"]
    return [
        f"{finding['id']} ({finding['impact']}): {[node['html'][:200] for node in finding['nodes'][:5]]}"
        for finding in found
        if finding["impact"] in ("serious", "critical")
    ]
