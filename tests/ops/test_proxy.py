"""The proxy of the Compose files, run for real: who asks is decided there, and nowhere else."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ops.stack import ports, process
from tests.ops.commands import native, server

CONFIGURATION = Path(__file__).parents[2] / "compose" / "proxy"
GROUPS = 'hanako "all-staff,legal";\noperator "*";\nempty "";\n'
USERS = "hanako:{PLAIN}h\noperator:{PLAIN}o\nstranger:{PLAIN}s\nempty:{PLAIN}e\n"
OPEN, SECRET = "公開の手順は毎週見直す。", "秘密の交渉は来月始める。"


class Proxy:
    """nginx with one of our files, before a running server."""

    def __init__(self, overlay: str, api: str, folder: Path) -> None:
        program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
        if program is None:
            pytest.skip("no nginx here; next: take it out of Debian's package nginx (.ci/run shows how)")
        chosen = ports.choose(("people", "inside"), ())
        (folder / "groups.map").write_text(GROUPS)
        (folder / "htpasswd").write_text(USERS)
        text = (CONFIGURATION / f"{overlay}.conf").read_text()
        for before, after in (
            ("listen 8080", f"listen 127.0.0.1:{chosen['people']}"),
            ("listen 8081", f"listen 127.0.0.1:{chosen['inside']}"),
            ("http://127.0.0.1:8000", api),
            ("/run/secrets/htpasswd", f"{folder}/htpasswd"),
            ("/etc/nginx/groups.map", f"{folder}/groups.map"),
        ):
            text = text.replace(before, after)
        (folder / "site.conf").write_text(text)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        places = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
        (folder / "nginx.conf").write_text(
            f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n"
            f"events {{}}\nhttp {{ access_log off; {places} include {folder}/site.conf; }}\n"
        )
        self.process = subprocess.Popen(
            [program, "-e", f"{folder}/error.log", "-p", str(folder), "-c", f"{folder}/nginx.conf"]
        )
        self.url, self.inside = (f"http://127.0.0.1:{chosen[name]}" for name in ("people", "inside"))
        up = process.wait_until(lambda: not ports.is_free(chosen["people"]), 15)
        assert up, (folder / "error.log").read_text()

    def hits(self, user: str | None = None, **headers: str) -> set[str]:
        """Keys of the documents that somebody finds."""
        answer = self.post("/v1/search", {"query": "手順 交渉", "top_k": 10}, user, **headers)
        answer.raise_for_status()
        return {hit["document"]["key"].rpartition("/")[2] for hit in answer.json()["hits"]}

    def post(self, path: str, body: Any, user: str | None = None, **headers: str) -> httpx.Response:
        auth = (user, user[0]) if user else None
        return httpx.post(self.url + path, json=body, auth=auth, headers=headers, trust_env=False, timeout=30)

    def end(self) -> None:
        self.process.kill()
        self.process.wait(10)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with an open document and one for a group; without a header nobody is anybody, as in `prod`."""
    with server(tmp_path_factory.mktemp("api") / "data", SHINSEN_ANONYMOUS_GROUPS="nobody") as running:
        events = [native("A", OPEN), native("B", SECRET, acl=["legal"])]
        done = httpx.post(f"{running.url}/v1/events?wait=applied&timeout=60s", json=events, trust_env=False, timeout=70)
        assert done.status_code == 200, done.text
        yield running.url


@pytest.fixture
def prod(api: str, tmp_path: Path) -> Iterator[Proxy]:
    proxy = Proxy("prod", api, tmp_path)
    yield proxy
    proxy.end()


@pytest.fixture
def dev(api: str, tmp_path: Path) -> Iterator[Proxy]:
    proxy = Proxy("dev", api, tmp_path)
    yield proxy
    proxy.end()


def test_in_prod_a_name_and_a_password_are_asked(prod: Proxy) -> None:
    for path in ("/v1/search", "/v1/query", "/v1/events"):
        assert prod.post(path, {"query": "手順"}).status_code == 401
    wrong = httpx.get(f"{prod.url}/v1/status", auth=("operator", "wrong"), trust_env=False)
    assert wrong.status_code == 401
    assert httpx.get(f"{prod.url}/health/live", trust_env=False).status_code == 200


def test_in_prod_groups_are_the_proxys_word(prod: Proxy) -> None:
    assert prod.hits("hanako") == {"A", "B"}
    assert prod.hits("operator") == {"A", "B"}
    assert prod.hits("stranger") == {"A"}
    # Even where somebody's line is empty, and the header with it.
    assert prod.hits("empty") == {"A"}


@pytest.mark.parametrize("name", ["X-Shinsen-Groups", "x-shinsen-groups", "X_Shinsen_Groups"])
def test_in_prod_nobody_gives_himself_groups(prod: Proxy, name: str) -> None:
    assert prod.hits("stranger", **{name: "*"}) == {"A"}
    assert (
        httpx.get(
            f"{prod.url}/v1/dead-letters", auth=("stranger", "s"), headers={name: "*"}, trust_env=False
        ).status_code
        == 403
    )
    seen = httpx.get(f"{prod.url}/v1/dead-letters", auth=("operator", "o"), trust_env=False)
    assert seen.status_code == 200


def test_metrics_are_for_the_inside(prod: Proxy) -> None:
    assert httpx.get(f"{prod.url}/metrics", auth=("operator", "o"), trust_env=False).status_code == 404
    assert "shinsen_store_up" in httpx.get(f"{prod.inside}/metrics", trust_env=False).text
    assert httpx.get(f"{prod.inside}/proxy", trust_env=False).status_code == 204
    assert httpx.get(f"{prod.inside}/v1/status", trust_env=False).status_code == 404


def test_in_dev_the_header_is_believed(dev: Proxy) -> None:
    assert dev.hits(**{"X-Shinsen-Groups": "legal"}) == {"A", "B"}
    assert dev.hits() == {"A"}
    assert "shinsen_store_up" in httpx.get(f"{dev.inside}/metrics", trust_env=False).text


def test_answers_come_word_by_word(prod: Proxy) -> None:
    with httpx.stream(
        "POST",
        f"{prod.url}/v1/query/stream",
        json={"question": "手順は何か。"},
        auth=("hanako", "h"),
        trust_env=False,
        timeout=30,
    ) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert "event: done" in "".join(answer.iter_text())
