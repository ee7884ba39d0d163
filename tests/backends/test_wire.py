"""The one watched POST, at a real server: how long it may last, where it really leads, over TLS (Impasse §9 [D33])."""

from __future__ import annotations

import datetime
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from support.reviewer_server import BOTH, Reviewer, ask, backend, serving
from troth.backends import wire
from troth.backends.http import HttpBackend, OpenAI
from troth.backends.protocol import Request


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
@pytest.mark.parametrize("cut", [1, 7, 4096])
def test_an_event_ends_at_an_empty_line_wherever_the_pieces_end(end: bytes, cut: int) -> None:
    event = b"data: " + b"x" * 30 + end
    data = event * (3 * wire.MOST_LINES)

    def through(whole: bytes) -> tuple[bytes, bool]:
        watch = wire.Watch(lambda: 0.0)
        pieces = (whole[start : start + cut] for start in range(0, len(whole), cut))
        passed = []
        try:
            passed += wire._Body(pieces, watch)
        except wire.Stopped:
            pass
        return b"".join(passed), watch.over

    assert through(data) == (data, False)
    assert through(b"data: x\n" * (wire.MOST_LINES + 1))[1]
    assert through(data + b"data: x\r\n" * wire.MOST_LINES)[1]


# --- limits --------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("fault", "wall", "idle", "end", "any_byte"),
    [
        ("hang", 20, 0.2, "idle_timeout", False),
        ("hang", 0.2, 20, "wall_timeout", False),
        ("hang_inside", 20, 0.3, "idle_timeout", True),
        ("drip", 0.5, 0.3, "wall_timeout", True),
        ("drip_head", 0.5, 0.3, "wall_timeout", True),
    ],
)
def test_limits_of_time(
    make: type[HttpBackend], fault: str, wall: float, idle: float, end: str, any_byte: bool
) -> None:
    answer = ask(make, Reviewer(fault), wall=wall, idle=idle)
    assert answer.end == end
    assert answer.any_byte is any_byte
    assert answer.failure is not None
    assert answer.failure.code == "timeout"
    assert answer.failure.retryable
    assert ("no end" if end == "wall_timeout" else "silence") in answer.failure.message
    assert ("something had come" if any_byte else "nothing had come") in answer.failure.message


def test_a_status_that_came_says_more_than_the_silence_behind_it() -> None:
    answer = ask(OpenAI, Reviewer("error_hang"), idle=0.2)
    assert answer.failure is not None
    assert answer.failure.code == "auth_error"
    assert answer.end == "completed"


@pytest.mark.parametrize(("wall", "idle", "end"), [(0.0, 5.0, "wall_timeout"), (5.0, 0.0, "idle_timeout")])
def test_without_time_nothing_is_begun(wall: float, idle: float, end: str) -> None:
    begun: list[int] = []
    assert wire.watched(lambda: begun.append(1), wire.Watch(lambda: 0.0), wall, idle) == end
    assert begun == []


def test_a_name_that_does_not_resolve_in_time_outlasts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    free = threading.Event()
    real = socket.getaddrinfo

    def slow(*arguments: Any, **named: Any) -> Any:
        free.wait(20)
        return real(*arguments, **named)

    reviewer = Reviewer()
    with serving(reviewer):
        monkeypatch.setattr(socket, "getaddrinfo", slow)
        monkeypatch.setattr(wire, "_JOIN_SECONDS", 0.01)
        answer = backend(OpenAI, reviewer.url).ask(Request("stance", b"artifact", wall=0.2))
        assert answer.end == "wall_timeout"
        before = set(threading.enumerate())
        free.set()  # the name resolves at last: the thread that was left behind sends nothing
        for thread in before:
            if thread.name == "troth-reviewer":
                thread.join(5)
    assert answer.sent == 0
    assert reviewer.asked == []


# --- the network ---------------------------------------------------------------------------------------------------


def test_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        answer = backend(OpenAI, f"http://127.0.0.1:{taken.getsockname()[1]}").ask(Request("stance", b"artifact"))
    assert answer.failure is not None
    assert answer.failure.code == "service_unavailable"
    assert (answer.sent, answer.any_byte) == (0, False)


@BOTH
def test_a_connection_that_breaks(make: type[HttpBackend]) -> None:
    answer = ask(make, Reviewer("hang_up"))
    assert answer.failure is not None
    assert answer.failure.code == "backend_error"
    assert not answer.failure.retryable


def test_localhost_that_leads_elsewhere_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    reviewer = Reviewer()
    with serving(reviewer):
        monkeypatch.setattr(wire, "_is_here", lambda stream: False)
        answer = backend(OpenAI, f"http://localhost:{reviewer.port}").ask(Request("stance", b"artifact"))
        assert answer.sent == 0
        assert reviewer.asked == []
        assert answer.failure is not None
        assert answer.failure.code == "backend_error"
        monkeypatch.undo()
        assert backend(OpenAI, f"http://localhost:{reviewer.port}").ask(Request("stance", b"artifact")).text


def test_over_ipv6() -> None:
    reviewer = Reviewer()
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            pass
    except OSError:
        pytest.skip("this machine has no IPv6")
    with serving(reviewer, host="::1"):
        reached = backend(OpenAI, f"http://[0::1]:{reviewer.port}")
        assert reached.endpoint == f"http://[::1]:{reviewer.port}"
        assert reached.ask(Request("stance", b"artifact")).text is not None
    assert reviewer.asked[0]["headers"]["host"] == f"[::1]:{reviewer.port}"


def test_the_address_of_a_peer() -> None:
    class Stream:
        def __init__(self, address: object) -> None:
            self.address = address

        def get_extra_info(self, info: str) -> object:
            return self.address if info == "server_addr" else None

    for address, here in (
        (("127.0.0.1", 80), True), (("::1", 80, 0, 0), True), (("192.0.2.1", 80), False),
        (("2001:db8::1", 80, 0, 0), False), (None, False),
    ):  # fmt: skip
        assert wire._is_here(Stream(address)) is here  # type: ignore[arg-type]  # stands in for a connection


INHERITED = {
    "HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9",
    "http_proxy": "http://127.0.0.1:9", "OPENAI_API_KEY": "sk-inherited-key", "OPENAI_ORG_ID": "inherited-org",
    "OPENAI_PROJECT_ID": "inherited-project", "OPENAI_BASE_URL": "http://127.0.0.1:9",
    "OPENAI_CUSTOM_HEADERS": "X-Inherited: yes\nAuthorization: Bearer inherited\nHost: inherited.example",
    "ANTHROPIC_API_KEY": "sk-inherited-key", "ANTHROPIC_AUTH_TOKEN": "inherited-token",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Inherited: yes\nx-api-key: inherited\nHost: inherited.example",
}  # fmt: skip


@BOTH
def test_nothing_is_inherited(make: type[HttpBackend], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in INHERITED.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    reviewer = Reviewer()
    answer = ask(make, reviewer)
    assert answer.text is not None
    assert reviewer.bad == []
    assert "inherited" not in str(reviewer.asked)


def test_a_client_that_asks_twice_or_elsewhere_is_stopped() -> None:
    import httpx2

    reviewer = Reviewer(key=None)
    with serving(reviewer):
        watch = wire.Watch(lambda: 0.0)
        gate = wire.Gate(reviewer.url, {}, watch)
        with httpx2.Client(transport=gate, trust_env=False) as client:
            for method, url in (
                ("GET", reviewer.url), ("POST", f"http://127.0.0.1:{reviewer.port + 1}/x"), ("POST", "https://a.example"),
            ):  # fmt: skip
                with pytest.raises(wire.Stopped):
                    client.request(method, url)
            assert reviewer.asked == []
            assert client.post(f"{reviewer.url}/v1/chat/completions", json={}).status_code == 400
            with pytest.raises(wire.Stopped):
                client.post(f"{reviewer.url}/v1/chat/completions", json={})
    assert len(reviewer.asked) == 1


# --- encryption ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost with its key, in one file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    plain = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(plain + made.public_bytes(serialization.Encoding.PEM))
    return path


def _server_side(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@BOTH
def test_over_tls(make: type[HttpBackend], certificate: Path) -> None:
    reviewer = Reviewer()
    with serving(reviewer, _server_side(certificate)):
        trusting = ssl.create_default_context(cafile=str(certificate))
        maker = backend(make, f"https://localhost:{reviewer.port}", tls=trusting)
        assert maker.ask(Request("stance", b"artifact")).text == b'{"schema_version": "1.0"}'
        reviewer.behaviour = "hang"
        assert maker.ask(Request("stance", b"artifact", idle=0.3)).end == "idle_timeout"


def test_a_certificate_that_nobody_vouches_for(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))  # the environment decides nothing
    reviewer = Reviewer()
    with serving(reviewer, _server_side(certificate)):
        answer = backend(OpenAI, f"https://localhost:{reviewer.port}").ask(Request("stance", b"artifact"))
    assert answer.failure is not None
    assert answer.failure.code == "backend_error"
    assert "certificate" in answer.failure.message
    assert answer.sent == 0
    assert reviewer.asked == []
