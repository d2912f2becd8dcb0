"""The access: this machine alone, no other site, the token, nothing too large, and what browsers are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from graph2vid.studio.access import Access, is_loopback
from graph2vid.studio.app import create_app
from graph2vid.studio.server import check_token, page_to_open
from studios import serving

TOKEN = "a-token-of-ours-0123456789"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Any:
    app = create_app(tmp_path_factory.mktemp("projects"))
    with TestClient(app, base_url="http://127.0.0.1:8765") as client:
        yield client


@pytest.fixture
def remote(folder: Path) -> Any:
    app = create_app(folder, access=Access(loopback=False, token=TOKEN))
    with TestClient(app, base_url="http://studio.example:9000") as client:
        yield client


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1", "[::1]"])
def test_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.7", "::", "evil.example", "localhost.evil.example", ""])
def test_other_machines(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "localhost.evil.example", "", "[::1", "[", "[zzz]", "10.0.0.1"]
)
def test_other_names_are_refused(client: Any, host: str) -> None:
    """A page elsewhere may let its name point to this machine (DNS rebinding); its requests still bear its name."""
    answer = client.get("/api/projects", headers={"host": host})
    assert answer.status_code == 421
    assert "localhost" in answer.json()["error"]


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:1", "[::1]:8765", "LOCALHOST"])
def test_names_of_this_machine_are_fine(client: Any, host: str) -> None:
    assert client.get("/api/projects", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
        {"origin": "http://[::1"},
        {"origin": "http://[zzz]:8765"},
        {"origin": "http://127.0.0.1:8765]"},
        {"origin": ""},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "http://127.0.0.1:8765.evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_other_sites_are_refused(client: Any, headers: dict[str, str], method: str) -> None:
    answer = client.request(method, "/api/projects", headers=headers, json={} if method == "POST" else None)
    assert answer.status_code == 403
    assert client.get("/api/projects").json() == []


def test_malformed_names_are_refused_where_any_name_is_fine(remote: Any) -> None:
    told = {"authorization": f"Bearer {TOKEN}"}
    for host in ("[", "[::1", "http://["):
        answer = remote.get("/api/projects", headers={"host": host, "origin": "http://[", **told})
        assert answer.status_code == 403


def test_a_link_from_elsewhere_may_open_the_page(client: Any) -> None:
    follows = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=follows).status_code == 200
    assert client.get("/", headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}).status_code == 403


def test_a_form_elsewhere_cannot_send_json(client: Any) -> None:
    answer = client.post("/api/projects", content=b'{"title": "x"}', headers={"content-type": "text/plain"})
    assert answer.status_code == 422
    assert client.get("/api/projects").json() == []


def test_the_token_is_needed(remote: Any) -> None:
    for headers in (
        {},
        {"authorization": "Bearer wrong"},
        {"cookie": "graph2vid_token=wrong"},
        {"authorization": "Basic x"},
    ):
        for path in ("/", "/api/projects", "/static/studio.js", "/view/view.js", "/docs", "/api/openapi.json"):
            answer = remote.get(path, headers=headers, follow_redirects=False)
            assert answer.status_code == 401, (path, headers)
    assert remote.get("/?token=wrong", follow_redirects=False).status_code == 401
    assert remote.get("/api/projects", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_the_printed_address_lets_in(remote: Any) -> None:
    answer = remote.get(f"/?token={TOKEN}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert remote.get("/api/projects").status_code == 200  # the cookie is kept
    assert remote.get("/api/projects", headers={"origin": "http://evil.example"}).status_code == 403


@pytest.mark.parametrize(
    "others",
    [
        'theme={"mode":"dark"}',
        "name=John Smith",
        "prefs[lang]=en",
        "flag",
        "=",
        "graph2vid_token_9000=stale",
        'a="b',
    ],
)
def test_cookies_of_other_programs_do_no_harm(remote: Any, others: str) -> None:
    """All programs on a host share its cookies, whatever their ports."""
    own = f"graph2vid_token_9000={TOKEN}"
    for cookies in (f"{others}; {own}", f"{own}; {others}", f"{others};{own};x={others}"):
        assert remote.get("/api/projects", headers={"cookie": cookies}).status_code == 200
    for cookies in (others, f"{others}; x{own}", f"{others}; graph2vid_token={TOKEN}", own[:-1], f"{own}x"):
        assert remote.get("/api/projects", headers={"cookie": cookies}).status_code == 401


@pytest.mark.parametrize("token", ["short", "with space in it", "x" * 201, "semi;colon-semi;colon", "é" * 20])
def test_what_is_no_token(token: str) -> None:
    with pytest.raises(ValueError, match="a token has 12 to 200"):
        check_token(token)


@pytest.mark.parametrize(
    "path", ["/", "/docs", "/static/studio.js", "/view/view.css", "/api/about", "/api/nothing", "/nothing"]
)
def test_every_answer_binds_the_browser(client: Any, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers


def test_pages_hold_no_script_of_their_own() -> None:
    from graph2vid.studio.app import STATIC

    for page in STATIC.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "style=" not in text
        assert "<style" not in text
        assert "onclick" not in text
        assert text.count("<script") == 1
        assert "http" not in text.replace("http-equiv", "")
    for script in STATIC.glob("*.js"):
        text = script.read_text(encoding="utf-8")
        for danger in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "http://",
            "https://",
        ):
            assert danger not in text, (script.name, danger)


def test_large_requests_are_refused(client: Any) -> None:
    assert client.post("/api/projects", json={"title": "x" * (2 << 20)}).status_code == 413

    def pieces() -> Any:
        yield b'{"title": "'
        for _ in range(40):
            yield b"x" * (64 << 10)
        yield b'"}'

    answer = client.post("/api/projects", content=pieces(), headers={"content-type": "application/json"})
    assert answer.status_code in (400, 413)
    assert client.get("/api/projects").json() == []


def test_other_accounts_of_this_machine_stay_outside(tmp_path: Path) -> None:
    """Also where the studio answers to this machine alone; and a page that is open goes on after a restart."""
    folder = tmp_path / "projects"
    with serving(folder) as server:
        token = (folder / ".token").read_text()
        assert server.opened == f"{server.address}?token={token}"
        assert (folder / ".token").stat().st_mode & 0o077 == 0
        assert httpx.get(f"{server.address}api/projects").status_code == 401
        closed = httpx.get(server.address)
        assert closed.status_code == 401 and "not open here" in closed.text and token not in closed.text
        assert httpx.get(f"{server.address}?token=wrong-one-0123456789").status_code == 401
        with httpx.Client(follow_redirects=True) as owner:
            assert owner.get(server.opened).status_code == 200
            assert owner.get(f"{server.address}api/projects").json() == []
    with serving(folder) as again:
        assert again.opened.partition("=")[2] == token
    (folder / ".token").chmod(0o644)  # others may have read it: it holds no longer
    with serving(folder) as again:
        assert again.opened.partition("=")[2] != token


def test_nothing_is_answered_without_the_token(tmp_path: Path) -> None:
    """Every operation of a studio on this machine, asked for as another account would: it knows the address."""
    with serving(tmp_path / "projects") as server:
        name = server.ask("POST", "projects", json={"title": "Mine"})["name"]
        before = server.ask("GET", f"projects/{name}")
        paths = server.ask("GET", "openapi.json")["paths"]
        operations = [(method.upper(), path) for path, methods in paths.items() for method in methods]
        assert len(operations) > 30
        asked = 0
        with httpx.Client(base_url=server.address) as stranger:
            for method, path in [*operations, ("GET", "/"), ("GET", "/docs"), ("GET", "/static/studio.js")]:
                for headers in ({}, {"cookie": "graph2vid_token=guessed-0123456789"}, {"authorization": "Bearer x"}):
                    answer = stranger.request(method, path.format_map(_Named(name)), headers=headers)
                    assert answer.status_code == 401, (method, path, headers, answer.status_code)
                    assert "set-cookie" not in answer.headers and "Mine" not in answer.text
                    asked += 1
        print(f"{asked} requests without the token, all refused")
        assert server.ask("GET", f"projects/{name}") == before


class _Named(dict[str, str]):
    """Any parameter of a path: the project that is there."""

    def __init__(self, name: str) -> None:
        super().__init__(project=name)

    def __missing__(self, key: str) -> str:
        return "0"


def test_the_page_that_is_opened_is_for_its_owner(tmp_path: Path) -> None:
    page = page_to_open(tmp_path, "http://127.0.0.1:1/?token=secret")
    assert page.stat().st_mode & 0o077 == 0 and "token=secret" in page.read_text()
