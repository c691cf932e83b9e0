"""The console in a real browser: asks, searches and reads by keyboard, fits 360 px, runs nothing of a document."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from playwright.async_api import Page, async_playwright, expect

from api.app import create_app
from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.settings import Settings
from tests.api.plant import CAUSE

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
TOLD = "Failed to load resource: the server responded with a status of 4"
"""Chromium's own remark on an error status, which the page shows to people."""


@asynccontextmanager
async def served(runtime: EmbeddedRuntime, settings: Settings) -> AsyncIterator[str]:
    server = uvicorn.Server(uvicorn.Config(create_app(runtime, settings), port=0, log_level="error", lifespan="off"))
    running = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn offers a flag only
        await asyncio.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await running


@pytest.fixture
async def page(runtime: EmbeddedRuntime, settings: Settings, plant: str) -> AsyncIterator[Page]:
    """The console at 360 px; anything that the page runs, breaks or fetches elsewhere fails the test."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no Chromium here; next: apt-get install --no-install-recommends chromium")
    async with served(runtime, settings) as url, async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=chromium, args=FLAGS)
        opened = await browser.new_page(viewport={"width": 360, "height": 800})
        trouble: list[str] = []

        def note(text: str, kind: str) -> None:
            if kind == "error" and not text.startswith(TOLD):
                trouble.append(text)

        opened.on("dialog", lambda dialog: trouble.append(f"dialog {dialog.message}"))
        opened.on("pageerror", lambda error: trouble.append(str(error)))
        opened.on("console", lambda line: note(line.text, line.type))
        opened.on(
            "request", lambda request: None if request.url.startswith((url, "data:")) else trouble.append(request.url)
        )
        await opened.goto(url)
        yield opened
        await browser.close()
        assert trouble == []


async def fits(page: Page) -> bool:
    """Say whether nothing has to be scrolled sideways."""
    return bool(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


async def test_a_question_is_asked_and_its_evidence_read_by_keyboard(page: Page) -> None:
    await page.keyboard.type("Q-42の停止原因は何か。")
    await page.keyboard.press("Enter")
    answer = page.get_by_role("region", name="回答 Answer")
    await expect(answer).to_contain_text(CAUSE)
    await expect(page.locator("#freshness")).to_contain_text("時点")
    chain = page.locator(".card", has_text="安全手順書").locator(".path").first
    await expect(chain).to_contain_text("Q-42")
    await expect(chain).to_contain_text("← 適用対象 applies_to —")
    await expect(page.locator("mark").first).to_be_visible()
    assert await fits(page)
    await answer.get_by_role("link", name="根拠 1 Evidence 1").first.press("Enter")
    await expect(page.locator("#evidence-1")).to_be_focused()
    await page.locator("#evidence-1 h3 a").press("Enter")
    await expect(page.get_by_role("heading", name="本文 Body")).to_be_visible()
    assert await fits(page)


async def test_a_hostile_document_stays_text(page: Page) -> None:
    await page.get_by_label("検索 Search").check()
    await page.locator("#text").fill("太字の本文")
    await page.get_by_role("button", name="送信 Send").click()
    await expect(page.get_by_role("link", name="<script>alert(1)</script>")).to_be_visible()
    assert await page.locator("#result img, #result script, #result b").count() == 0
    await page.get_by_role("link", name="<script>alert(1)</script>").click()
    await expect(page.get_by_role("heading", name="<script>alert(1)</script>")).to_be_visible()
    await expect(page.locator(".body")).to_contain_text("<img src=x onerror=alert(1)>")
    assert await page.locator("#result img, #result script, #result b").count() == 0


async def test_groups_may_be_japanese(page: Page) -> None:
    await page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    await page.locator("input[name=groups]").fill("人事部")
    await page.locator("#text").fill("Q-42の停止原因は何か。")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("region", name="回答 Answer")).to_be_visible()
    await expect(page.locator(".card")).to_have_count(0)


async def test_names_are_offered_while_typing_and_where_little_was_found(page: Page) -> None:
    await page.get_by_label("検索 Search").check()
    await page.locator("#text").press_sequentially("小型ふ")
    await page.locator("#text").press("Backspace")
    await expect(page.locator("#names option").first).to_have_attribute("value", "小型粉砕機")
    await page.locator("#text").fill("赤井粉砕機")
    await page.keyboard.press("Enter")
    await page.locator(".meant").get_by_role("link", name="赤い粉砕機").click()
    await expect(page.locator("#text")).to_have_value("赤い粉砕機")
    await expect(page.locator(".card").first).to_be_visible()
    assert await fits(page)


async def test_errors_are_told(page: Page) -> None:
    await page.evaluate("location.hash = '#/ask?q=%20'")
    await expect(page.get_by_role("alert")).to_contain_text("400")
