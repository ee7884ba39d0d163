"""Timestamps from a real responder (openssl) behind a small local server: what is taken, and every way not to."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from troth.core.errors import DoesNotHold, NotEstablished, Refused, TrothError
from troth.stores import timestamps
from troth.stores.timestamps import RESPONSE_LIMIT, check_stamp, request_stamp

pytest.importorskip("rfc3161_client", reason="the extra `timestamps` is not installed")
pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")

TEXT = b"example.com/ledger\n5\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"

_SETTINGS = """
[tsa]
default_tsa = ours
[ours]
serial = {folder}/serial
signer_cert = {folder}/tsa.pem
certs = {folder}/tsa.pem
signer_key = {folder}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha512
ess_cert_id_chain = no
ess_cert_id_alg = sha256
"""


def openssl(*words: str | Path, stdin: bytes | None = None) -> bytes:
    done = subprocess.run(["openssl", *map(str, words)], input=stdin, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


class Authority:
    """A timestamp authority with a root certificate of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "root.pem"
        folder.mkdir()
        new = ("req", "-newkey", "rsa:2048", "-nodes")
        openssl(
            *new, "-x509", "-days", "3650", "-subj", "/CN=root", "-keyout", folder / "root.key", "-out", self.root,
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
        )  # fmt: skip
        openssl(*new, "-subj", "/CN=tsa", "-keyout", folder / "tsa.key", "-out", folder / "tsa.csr")
        (folder / "ext").write_text(
            "extendedKeyUsage=critical,timeStamping\nkeyUsage=critical,digitalSignature\n"
            "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
        )
        openssl(
            "x509", "-req", "-in", folder / "tsa.csr", "-CA", self.root, "-CAkey", folder / "root.key", "-days", "3650",
            "-set_serial", "2", "-extfile", folder / "ext", "-out", folder / "tsa.pem",
        )  # fmt: skip
        (folder / "settings").write_text(_SETTINGS.format(folder=folder))
        (folder / "serial").write_text("01\n")
        self._lock = threading.Lock()

    def answer(self, query: bytes) -> bytes:
        """What the service answers to a query."""
        with self._lock:
            (self.folder / "query").write_bytes(query)
            return openssl(
                "ts", "-reply", "-config", self.folder / "settings", "-queryfile", self.folder / "query",
            )  # fmt: skip


class Service:
    """A server on this machine that gives what the test wants it to give."""

    def __init__(self, authority: Authority) -> None:
        self.answer: Callable[[bytes], bytes] = authority.answer
        self.status = 200
        self.headers: dict[str, str] = {}
        self.queries: list[tuple[str, bytes]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                query = self.rfile.read(int(self.headers["Content-Length"]))
                outer.queries.append((self.headers["Content-Type"], query))
                body = outer.answer(query)
                self.send_response(outer.status)
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"
        threading.Thread(target=lambda: self._server.serve_forever(0.01), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tsa") / "ours")


@pytest.fixture(scope="module")
def rival(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tsa") / "rival")


@pytest.fixture
def service(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    found = Service(authority)
    yield found
    found.close()


def test_a_stamp_is_given_and_checked(service: Service, authority: Authority, tmp_path: Path) -> None:
    stamp = request_stamp(TEXT, service.url, certificates=authority.root)
    assert stamp.verified
    [(kind, _)] = service.queries
    assert kind == "application/timestamp-query"
    file = tmp_path / "c.tsr"
    file.write_bytes(stamp.data)
    found = check_stamp(TEXT, file, authority.root)
    assert (found.at, found.verified) == (stamp.at, True)
    assert not check_stamp(TEXT, file, None).verified


def test_openssl_reads_what_is_kept(service: Service, authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(TEXT)
    (tmp_path / "c.tsr").write_bytes(request_stamp(TEXT, service.url).data)
    said = openssl("ts", "-verify", "-data", tmp_path / "text", "-in", tmp_path / "c.tsr", "-CAfile", authority.root)
    assert b"Verification: OK" in said


def test_each_request_has_a_nonce_of_its_own_and_an_old_answer_is_refused(
    service: Service, authority: Authority
) -> None:
    first = request_stamp(TEXT, service.url, certificates=authority.root)
    service.answer = lambda _: first.data
    with pytest.raises(DoesNotHold, match="nonce"):
        request_stamp(TEXT, service.url, certificates=authority.root)
    with pytest.raises(DoesNotHold, match="nonce"):
        request_stamp(TEXT, service.url)
    queries = [query for _, query in service.queries]
    assert len(set(queries)) == 3


def test_a_stamp_of_something_else_is_refused(service: Service, authority: Authority, tmp_path: Path) -> None:
    other = request_stamp(b"another text", service.url).data
    service.answer = lambda _: other
    for certificates in (authority.root, None):
        with pytest.raises(DoesNotHold, match="imprint"):
            request_stamp(TEXT, service.url, certificates=certificates)
        file = tmp_path / "c.tsr"
        file.write_bytes(other)
        with pytest.raises(DoesNotHold, match="imprint"):
            check_stamp(TEXT, file, certificates)


def test_a_service_that_nobody_trusts_is_refused(service: Service, authority: Authority, rival: Authority) -> None:
    service.answer = rival.answer
    with pytest.raises(DoesNotHold, match="does not vouch"):
        request_stamp(TEXT, service.url, certificates=authority.root)
    assert request_stamp(TEXT, service.url, certificates=rival.root).verified
    assert not request_stamp(TEXT, service.url).verified


def test_no_bit_of_a_kept_stamp_makes_it_say_another_time(
    service: Service, authority: Authority, tmp_path: Path
) -> None:
    right = request_stamp(TEXT, service.url, certificates=authority.root)
    file = tmp_path / "c.tsr"
    refused = 0
    for at in range(0, len(right.data), 7):
        bent = bytearray(right.data)
        bent[at] ^= 0x10
        file.write_bytes(bytes(bent))
        try:
            found = check_stamp(TEXT, file, authority.root)
        except TrothError:
            refused += 1
        else:  # a certificate that is carried along and not needed, for example
            assert found.at == right.at
    file.write_bytes(right.data)
    assert check_stamp(TEXT, file, authority.root).at == right.at
    assert refused > len(right.data) // 14


def test_a_service_that_refuses_is_told(service: Service, authority: Authority, tmp_path: Path) -> None:
    # The service takes no such hash, and answers with a reason in the place of a stamp.
    query = openssl("ts", "-query", "-digest", "00" * 48, "-sha384")
    refusal = authority.answer(query)
    service.answer = lambda _: refusal
    with pytest.raises(NotEstablished, match="E_TIMESTAMP_REFUSED"):
        request_stamp(TEXT, service.url)
    file = tmp_path / "c.tsr"
    file.write_bytes(refusal)
    with pytest.raises(DoesNotHold, match="grants no timestamp"):
        check_stamp(TEXT, file, authority.root)


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, b""), (200, b"<html>"), (200, b"\x30\x03\x02\x01\x00"), (200, b"\x30\x80"), (200, b"\0" * 500)],
)
def test_an_answer_that_is_no_stamp_is_refused(service: Service, status: int, body: bytes) -> None:
    service.status, service.answer = status, lambda _: body
    with pytest.raises((Refused, NotEstablished)):
        request_stamp(TEXT, service.url)


@pytest.mark.parametrize("status", [302, 307, 400, 404, 500, 503])
def test_nothing_is_followed_and_no_error_is_taken_for_an_answer(service: Service, status: int) -> None:
    service.status, service.headers = status, {"Location": "file:///etc/hostname"}
    with pytest.raises(NotEstablished, match="E_TIMESTAMP_UNREACHABLE"):
        request_stamp(TEXT, service.url)
    assert len(service.queries) == 1


def test_an_endless_answer_is_not_read_to_its_end(service: Service) -> None:
    service.answer = lambda _: b"\0" * (RESPONSE_LIMIT + 1)
    with pytest.raises(NotEstablished, match="more than"):
        request_stamp(TEXT, service.url)


def test_an_answer_that_takes_too_long_is_given_up(service: Service) -> None:
    moments = iter([0.0, *([100.0] * 50)])
    with pytest.raises(NotEstablished, match="more than 30 seconds"):
        request_stamp(TEXT, service.url, clock=lambda: next(moments))
    waiting = threading.Event()
    service.answer = lambda _: b"x" if waiting.wait(20) else b""
    with pytest.raises(NotEstablished, match="E_TIMESTAMP_UNREACHABLE"):
        request_stamp(TEXT, service.url, timeout=0.2)
    waiting.set()


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://127.0.0.1/", "127.0.0.1", "", "data:,x"])
def test_only_the_web_is_asked(url: str) -> None:
    with pytest.raises(Refused, match="E_TIMESTAMP_URL"):
        request_stamp(TEXT, url)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/", "http://[", "http://127.0.0.1:99999/", "http:///x", "http://a b/"]
)
def test_a_service_that_is_not_there(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(NotEstablished, match="E_TIMESTAMP_UNREACHABLE"):
        request_stamp(TEXT, url, timeout=2)


def test_without_the_package_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "rfc3161_client", None)
    with pytest.raises(Refused, match="E_TIMESTAMP_UNAVAILABLE"):
        request_stamp(TEXT, "http://127.0.0.1:1/")


def test_what_is_no_certificate(service: Service, authority: Authority, tmp_path: Path) -> None:
    stamp = request_stamp(TEXT, service.url)
    file, bad = tmp_path / "c.tsr", tmp_path / "bad.pem"
    file.write_bytes(stamp.data)
    for data in (b"", b"x", b"-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n"):
        bad.write_bytes(data)
        with pytest.raises(Refused, match="E_TIMESTAMP_MALFORMED"):
            check_stamp(TEXT, file, bad)
    with pytest.raises(Refused, match="E_TIMESTAMP_MISSING"):
        check_stamp(TEXT, file, tmp_path / "none")
    with pytest.raises(Refused, match="E_TIMESTAMP_MISSING"):
        check_stamp(TEXT, tmp_path / "none", authority.root)
    bad.write_bytes(authority.root.read_bytes() * 2)
    assert check_stamp(TEXT, file, bad).verified


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300))
def test_a_reader_of_stamps_never_breaks(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "any.tsr"
    file.write_bytes(data)
    with pytest.raises(TrothError):
        check_stamp(TEXT, file, None)
    assert timestamps.CODES
