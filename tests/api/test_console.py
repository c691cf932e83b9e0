"""The console: served with a strict policy, nothing from elsewhere, hostile text stays text."""

from html.parser import HTMLParser

import httpx
import pytest

FILES = ["/", "/console/console.css", "/console/console.js", "/console/render.js"]


@pytest.mark.parametrize("path", FILES)
async def test_all_files_come_from_here_under_a_strict_policy(client: httpx.AsyncClient, path: str) -> None:
    response = await client.get(path)
    assert response.status_code == 200
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
    assert "http://" not in response.text and "https://" not in response.text


async def test_the_page_holds_no_inline_script_or_style(client: httpx.AsyncClient) -> None:
    class Reader(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.found: list[tuple[str, dict[str, str | None]]] = []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.found.append((tag, dict(attrs)))

    reader = Reader()
    reader.feed((await client.get("/")).text)
    assert all(attributes.get("src") for tag, attributes in reader.found if tag == "script")
    assert not [
        tag
        for tag, attributes in reader.found
        if tag == "style" or any(a.startswith("on") or a == "style" for a in attributes)
    ]
    assert ("html", {"lang": "ja"}) in reader.found


@pytest.mark.parametrize("path", FILES[2:])
async def test_scripts_never_parse_text_as_html(client: httpx.AsyncClient, path: str) -> None:
    source = (await client.get(path)).text
    for sink in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
        assert sink not in source


async def test_hostile_titles_leave_the_api_as_json_only(client: httpx.AsyncClient, plant: str) -> None:
    response = await client.get("/v1/documents/plant/reports/X1")
    assert response.json()["document"]["title"] == "<script>alert(1)</script>"
    assert response.headers["content-type"].startswith("application/json")
    assert response.headers["x-content-type-options"] == "nosniff"


async def test_unknown_files_are_404(client: httpx.AsyncClient) -> None:
    assert (await client.get("/console/../app.py")).status_code == 404
    assert (await client.get("/console/other.js")).status_code == 404
