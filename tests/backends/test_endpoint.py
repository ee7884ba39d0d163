"""The key of consent: one spelling for each place, and nothing that only looks like it."""

from __future__ import annotations

import ipaddress
import string
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from troth.backends.endpoint import endpoint_key, is_loopback, named_key, parse_endpoint
from troth.core.errors import Refused

SAME = [
    ("https://api.openai.com", "https://api.openai.com"),
    ("https://api.openai.com/", "https://api.openai.com"),
    ("https://api.openai.com/v1/chat?key=1#top", "https://api.openai.com"),
    ("HTTPS://API.OpenAI.COM:443/v1", "https://api.openai.com"),
    ("https://api.openai.com.", "https://api.openai.com"),
    ("https://api.openai.com:8443", "https://api.openai.com:8443"),
    ("https://api.openai.com:80", "https://api.openai.com:80"),
    ("https://api.openai.com:65535", "https://api.openai.com:65535"),
    ("https://api.openai.com:", "https://api.openai.com"),
    ("https://api.openai.com/a@b", "https://api.openai.com"),
    ("https://api.openai.com?a@b.example", "https://api.openai.com"),
    ("https://api.openai.com#@b.example", "https://api.openai.com"),
    ("https://XN--Bcher-KVA.example", "https://xn--bcher-kva.example"),
    ("https://192.0.2.7/v1", "https://192.0.2.7"),
    ("https://192.0.2.7.", "https://192.0.2.7"),
    ("http://localhost:11434/v1", "http://localhost:11434"),
    ("http://127.0.0.1:80", "http://127.0.0.1"),
    ("http://127.3.2.1:8080", "http://127.3.2.1:8080"),
    ("http://[::1]:80/", "http://[::1]"),
    ("http://[0:0:0:0:0:0:0:1]:8000", "http://[::1]:8000"),
    ("https://[2001:DB8:0:0::0001]/x", "https://[2001:db8::1]"),
    ("https://[2001:db8::1]:443", "https://[2001:db8::1]"),
    ("https://my_host.internal", "https://my_host.internal"),
]


@pytest.mark.parametrize(("url", "key"), SAME)
def test_one_key_for_each_place(url: str, key: str) -> None:
    assert endpoint_key(url) == key
    assert endpoint_key(key) == key


HOSTILE = [
    "",
    "api.openai.com",
    "//api.openai.com",
    "https:api.openai.com",
    "https:/api.openai.com",
    "ftp://api.openai.com",
    "file:///etc/passwd",
    "javascript://api.openai.com",
    "https://",
    "https:///v1",
    "https://:443",
    "https://user@api.openai.com",
    "https://user:pass@api.openai.com",
    "https://:@api.openai.com",
    "https://@api.openai.com",
    "https://api.openai.com@evil.example",
    "https://api.openai.com:443@evil.example",
    "https://api.openai.com\\@evil.example",
    "https://evil.example\\.openai.com",
    "https://api.openai.com%2eevil.example",
    "https://api.openai.com%00.evil.example",
    "https://api.openai.com\n.evil.example",
    "https://api.openai.com\t",
    " https://api.openai.com",
    "https://api.openai.com ",
    "https://api.openai.com\u200b",
    "https://api.openai.com\u202e",
    "https://\u0430pi.openai.com",
    "https://api\u3002openai.com",
    "https://api.openai.com\uff0fevil.example",
    "https://b\u00fccher.example",
    "https://api..openai.com",
    "https://.openai.com",
    "https://api.openai.com..",
    "https://-api.openai.com",
    "https://api-.openai.com",
    "https://" + "a" * 64 + ".example",
    "https://" + "a." * 130 + "example",
    "https://api.openai.com:0",
    "https://api.openai.com:0443",
    "https://api.openai.com:65536",
    "https://api.openai.com:-1",
    "https://api.openai.com:+443",
    "https://api.openai.com:4 43",
    "https://api.openai.com:443:443",
    "https://api.openai.com:\u0664\u0664\u0663",
    "https://api.openai.com:443x",
    "https://2130706433",
    "https://0x7f000001",
    "https://0x7f.1",
    "https://127.1",
    "https://127.0.0.01",
    "https://0177.0.0.1",
    "https://256.1.1.1",
    "https://1.2.3.4.5",
    "https://example.123",
    "https://::1",
    "https://[::1",
    "https://[::1]x",
    "https://[::1]443",
    "https://[::1%eth0]",
    "https://[fe80::1%25eth0]",
    "https://[127.0.0.1]",
    "https://[]",
    "https://[v1.x]",
    "https://[::1].example.com",
    "http://api.openai.com",
    "http://192.168.1.4:8000",
    "http://0.0.0.0:8000",
    "http://[::]:8000",
    "http://[::ffff:127.0.0.1]:8000",
    "http://localhost.example.com",
    "http://localhost@evil.example",
    "http://127.0.0.1.example.com",
    "http://10.0.0.1",
    "https://" + "a" * 3000,
    "https://api.openai.com/" + "a" * 3000,
    "https://api.openai.com/a b",
    "https://api.openai.com/\\evil.example",
    "https://api.openai.com/\x1b[2J",
    "https://api.openai.com/#\u202e",
]


@pytest.mark.parametrize("url", HOSTILE)
def test_what_cannot_be_meant_plainly_is_refused(url: str) -> None:
    with pytest.raises(Refused) as refused:
        endpoint_key(url)
    assert refused.value.code == "E_ENDPOINT"


def test_a_password_is_never_repeated() -> None:
    with pytest.raises(Refused) as refused:
        endpoint_key("https://me:hunter2-the-password@api.openai.com")
    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in str(refused.value.as_json())


@pytest.mark.parametrize(
    ("host", "here"),
    [("localhost", True), ("127.0.0.1", True), ("127.255.0.9", True), ("::1", True), ("::ffff:127.0.0.1", False),
     ("example.com", False), ("128.0.0.1", False), ("::2", False), ("0.0.0.0", False)],
)  # fmt: skip
def test_what_is_this_machine(host: str, here: bool) -> None:
    assert is_loopback(host) is here


def test_a_scripted_reviewer_is_named_as_it_stands() -> None:
    assert named_key("scripted:answers.json") == "scripted:answers.json"
    assert named_key("https://API.openai.com/v1") == "https://api.openai.com"
    for wrong in ("scripted:", "scripted:a\nb", "scripted:" + "a" * 3000):
        with pytest.raises(Refused):
            named_key(wrong)


# --- properties ----------------------------------------------------------------------------------------------------

LABEL = st.from_regex(r"[a-z](?:[a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
NAMES = st.lists(LABEL, min_size=1, max_size=4).map(".".join)
V4 = st.ip_addresses(v=4).map(str)
V6 = st.ip_addresses(v=6).filter(lambda address: address.ipv4_mapped is None)
PORTS = st.none() | st.integers(1, 65_535)


def cased(text: str, flags: list[bool]) -> str:
    return "".join(char.upper() if flag else char for char, flag in zip(text, flags * len(text), strict=False))


@given(
    host=NAMES | V4 | V6,
    port=PORTS,
    tail=st.sampled_from(["", "/", "/v1", "/a/b?c=d@e", "?q", "#f", "/v1#@x"]),
    flags=st.lists(st.booleans(), min_size=1, max_size=7),
    expanded=st.booleans(),
    dotted=st.booleans(),
)
def test_spellings_of_one_place_have_one_key(
    host: object, port: int | None, tail: str, flags: list[bool], expanded: bool, dotted: bool
) -> None:
    if isinstance(host, ipaddress.IPv6Address):
        plain, written = f"[{host.compressed}]", f"[{host.exploded if expanded else host.compressed}]"
    else:
        plain = str(host)
        written = plain + ("." if dotted else "")
    expected = f"https://{plain}" + (f":{port}" if port not in (None, 443) else "")
    shown = f":{port}" if port is not None else ""
    key = endpoint_key(cased(f"https://{written}{shown}", flags) + tail)
    assert key == expected
    assert endpoint_key(key) == key
    # Two places never share a key: the parts can be read back from it.
    parts = parse_endpoint(key)
    assert parts.host == plain.strip("[]")
    assert (parts.port or 443) == (port or 443)


@given(st.text(alphabet=string.printable + "\u0430\u200b\u3002[]@:%\\", max_size=60))
@example("https://a@b")
@example("https://[::1]:80")
def test_any_text_is_a_key_or_refused(tail: str) -> None:
    codes: set[str] = set()
    for url in (tail, f"https://{tail}", f"http://{tail}", f"https://api.openai.com{tail}"):
        try:
            key = endpoint_key(url)
        except Refused as refused:
            codes.add(refused.code)
            continue
        # What was taken is what a reader of URLs of another make takes it for.
        other = urlsplit(url)
        assert "@" not in key
        assert other.username is None
        assert other.password is None
        assert key.split("://")[0] == other.scheme
        host = (other.hostname or "").removesuffix(".")
        host = ipaddress.ip_address(host).compressed if ":" in host else host
        assert parse_endpoint(key).host == host
        assert (parse_endpoint(key).port or {"http": 80, "https": 443}[other.scheme]) == (
            other.port or {"http": 80, "https": 443}[other.scheme]
        )
        if other.scheme == "http":
            assert parse_endpoint(key).loopback
    assert codes <= {"E_ENDPOINT"}
