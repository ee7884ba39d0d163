"""Where in an argument vector a credential stands: headers, addresses, options, assignments, bodies, token formats.

An argument is looked at as a whole, and as the text of a script (``sh -c``). A shape that is as good as certain is
*firm*; one that ordinary prose has as well (``--token`` before any word) is not, and counts only where its value is
known from a firm one. Digests, ids and paths are no secrets unless they stand where only a secret can.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

from troth.core.tokenformats import detectors, finds

if TYPE_CHECKING:
    from detect_secrets.plugins.base import BasePlugin

LONGEST: Final = 1 << 17
"""Characters of one argument that are looked at; the kernel takes no longer one."""


@dataclass(frozen=True, slots=True)
class Found:
    """One credential: which argument (from 0), where in it, what kind of thing it is, and whether that is firm."""

    argument: int
    start: int
    end: int
    kind: str
    value: str = field(repr=False)
    firm: bool = True


_NAMES: Final = r"pass(?:word|wd|phrase)|secret|token|(?:api|access|secret|auth|account|storage|encryption)[_-]?key"
_ENDS_SECRET: Final = re.compile(rf"(?i)(?:^|[._-]|auth|access|api)(?:{_NAMES})$|^pgpassword$|_pwd$")
_NO_SECRET: Final = re.compile(
    r"(?i)(?:^|[._-])(?:max|min|num|pad|eos|bos|unk|sep|cls|mask|special|start|end|stop|next|no|without|ask|prompt|show"
    r"|require|use|change|reset|generate)[_-]\w+$"
)
_TEXT_OPTION: Final = re.compile(
    rf"(?i)(?<![\w-])(--?(?:[a-z0-9]+[_-])*(?:{_NAMES}))(?:=|\s+)([\"']?)([^\s\"'`;|&]+)\2"
)
_ASSIGNED: Final = re.compile(r"(?<![\w.$-])([A-Z][A-Z0-9_]*)=([\"']?)([^\s\"'`;|&()]+)\2")
_WHOLE_ASSIGNED: Final = re.compile(r"(?:-D|-e|-E|--?[\w-]+=)?([A-Za-z_][\w.-]*)=(.+)$", re.DOTALL)
_FORM: Final = re.compile(rf"(?i)(?:^|[?&])((?:[\w.-]*[_.-])?(?:{_NAMES}|sig|signature))=([^&\s\"'#]+)")
_MEMBER: Final = re.compile(rf"(?i)\"((?:[\w.-]*[_.-])?(?:{_NAMES}))\"\s*:\s*\"([^\"\\]+)\"")
_URL: Final = re.compile(r"(?i)(?<![a-z0-9+.-])[a-z0-9+.-]+://([^\s/@\"'?#:]*)(?::([^\s/@\"'?#]*))?@")
_AUTHORIZATION: Final = re.compile(
    r"(?i)\b(?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?"
    r"((?:bearer|basic|token|apikey|api-key|negotiate|digest|bot|splunk)\s+)?([^\s\"',;]{4,})"
)
_HEADER: Final = re.compile(
    r"(?i)(?<![\w-])((?:x-)?(?:[a-z0-9]+-)*(?:api-?key|(?:auth|access|vault|csrf|security|session|private|job|deploy)-?token"
    r"|subscription-key|application-key))\s*:\s*([^\s\"']+)(?=[\"'\n]|$)"
)
_COOKIE: Final = re.compile(r"(?i)(?<![\w-])(?:set-)?cookie\s*:\s*([^\s\"'=;]+=[^\"'\n]+)")
_KEY_BLOCK: Final = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*-----|\Z)", re.DOTALL
)
_NEWER: Final = re.compile(
    r"(?<![\w-])(sk-(?:ant|proj|svcacct|admin|or)-[A-Za-z0-9_-]{20,}|github_pat_\w{22,}|AIza[\w-]{35}|hf_[A-Za-z0-9]{30,}"
    r"|ya29\.[\w-]{20,}|xai-[A-Za-z0-9]{40,}|gsk_[A-Za-z0-9]{40,}|dckr_pat_[\w-]{20,}|shpat_[0-9a-f]{32}"
    r"|gh[pousr]_\w{36,}|gl(?:pat|dt|rt|cbt)-[\w-]{20,}|npm_[A-Za-z0-9]{36}|pypi-[\w-]{50,})"
)
_CURL_USER: Final = re.compile(
    r"\bcurl\b[^|;&\n]{0,500}?\s(?:-u|--user|--proxy-user)[\s=]*[\"']?[^\s:\"']+:([^\s\"']+)"
)

_SHORT_OPTIONS: Final = {
    "curl": {"-u": "user", "--user": "user", "-U": "user", "--proxy-user": "user", "--pass": "whole"},
    "http": {"-a": "user", "--auth": "user"},
    "https": {"-a": "user", "--auth": "user"},
    "sshpass": {"-p": "whole"},
    "mysql": {"-p": "joined"},
    "mysqldump": {"-p": "joined"},
    "mysqladmin": {"-p": "joined"},
    "mariadb": {"-p": "joined"},
    "mongosh": {"-p": "whole"},
    "mongo": {"-p": "whole"},
    "redis-cli": {"-a": "whole"},
    "ldapsearch": {"-w": "whole"},
    "ldapmodify": {"-w": "whole"},
    "docker": {"-p": "login"},
    "podman": {"-p": "login"},
    "zip": {"-P": "whole"},
    "unzip": {"-P": "whole"},
    "7z": {"-p": "joined"},
    "plink": {"-pw": "whole"},
    "openssl": {"-pass": "user", "-passin": "user", "-passout": "user"},
    "smbclient": {"-U": "percent"},
}
"""Short options that take a secret, by program: in the next word, joined to it, after a colon or a percent sign."""

_PLACEHOLDER: Final = re.compile(
    r"^(?:\$.*|%.*|<.*>?|\{.*|\[.*|\*+|x{3,}|X{3,}|\.{3}|…|-+|@.*|\d{1,3}|id=.*|type=.*"
    r"|(?i:true|false|yes|no|none|null|nil|stdin|prompt|keyring))$",
    re.DOTALL,
)
_PATH: Final = re.compile(r"^(?:file:|fd:|env:)|^~/|^\.{1,2}/|^(?:/[\w.@-]+){2,}/?$")
_WORDY: Final = re.compile(r"^[A-Za-z][a-z]*(?:[-_][a-z]+)*[.,:!?)]*$|^[A-Z_]+$")
_CANDIDATE: Final = re.compile(r"[A-Za-z0-9_-]{16,}")
_JOINTS: Final = re.compile(r"[_-]")
_IN_TOKEN: Final = re.compile(r"[\w.+-]")
_PLAIN_DIGEST: Final = re.compile(r"^(?:[0-9a-f-]+|[0-9A-F-]+)$")

_LEFT_OUT: Final = frozenset(
    {"HexHighEntropyString", "Base64HighEntropyString", "IPPublicDetector", "KeywordDetector", "BasicAuthDetector",
     "PrivateKeyDetector"}
)  # fmt: skip
"""Detectors of the library that guess by chance or by words, and those whose shapes are looked at here."""


def credentials(argv: Sequence[str]) -> Iterator[Found]:
    """Yield what looks like a credential in an argument vector, whole or in the text of a script in it, each once."""
    seen: set[tuple[int, int, int]] = set()
    for found in _all(argv):
        place = (found.argument, found.start, found.end)
        if place not in seen:
            seen.add(place)
            yield found


def _all(argv: Sequence[str]) -> Iterator[Found]:
    options = _SHORT_OPTIONS.get(argv[0].rsplit("/", 1)[-1], {}) if argv else {}
    login = "login" in argv[1:3]
    for at, argument in enumerate(argv):
        yield from _in_argument(at, argument[:LONGEST])
        following = argv[at + 1] if at + 1 < len(argv) else None
        if following is not None and at and _names_secret(argument) and not following.startswith("-"):
            yield from _value(at + 1, following, 0, f"the value of {argument[:60]}")
        how = options.get(argument)
        if following is not None and (how in {"whole", "user", "percent"} or (how == "login" and login)):
            mark = {"user": ":", "percent": "%"}.get(how or "")
            start = following.find(mark) + 1 if mark else 0
            if start or not mark:
                yield from _value(at + 1, following, start, f"a password for {argv[0].rsplit('/', 1)[-1][:60]}")
        if at and options.get(argument[:2]) == "joined" and len(argument) > 2 and not argument.startswith("--"):
            yield from _value(at, argument, 2, f"a password for {argv[0].rsplit('/', 1)[-1][:60]}")


def _names_secret(option: str) -> bool:
    """Tell whether a word is an option whose next word is a secret: ``--password``, ``--github-token``."""
    name = option.lstrip("-")
    return option.startswith("-") and len(name) > 2 and "=" not in option and _is_secret_name(name)


def _is_secret_name(name: str) -> bool:
    return _ENDS_SECRET.search(name) is not None and _NO_SECRET.search(name) is None


def _value(at: int, argument: str, start: int, kind: str) -> Iterator[Found]:
    value = argument[start:]
    if value and not _PLACEHOLDER.match(value) and not _PATH.search(value):
        yield Found(at, start, len(argument), kind, value)


def _in_argument(at: int, text: str) -> Iterator[Found]:
    if len(text) < 4:
        return
    script = any(char.isspace() for char in text.strip())
    yield from (Found(at, *match.span(), "a private key", match[0]) for match in _KEY_BLOCK.finditer(text))
    for match in _AUTHORIZATION.finditer(text):
        whole = match.start() == 0 and match[1] is not None
        yield from _matched(at, match, 2, "an Authorization header", firm=whole or not _WORDY.match(match[2]))
    for match in _HEADER.finditer(text):
        yield from _matched(at, match, 2, f"the header {match[1][:60]}", firm=not _WORDY.match(match[2]))
    for match in _COOKIE.finditer(text):
        yield from _matched(at, match, 1, "a cookie")
    yield from _in_addresses(at, text)
    for pattern in (_FORM, _MEMBER):
        for match in pattern.finditer(text):
            if not _NO_SECRET.search(match[1]):
                yield from _matched(at, match, 2, f"the value of {match[1][:60]}")
    yield from _in_script(at, text) if script else _in_word(at, text)
    yield from _by_format(at, text)


def _in_word(at: int, text: str) -> Iterator[Found]:
    """Yield the value of an option or an assignment that is one argument."""
    whole = _WHOLE_ASSIGNED.match(text)
    if whole is not None and _is_secret_name(whole[1]):
        yield from _matched(at, whole, 2, f"the value of {whole[1][:60]}")
        return
    name, mark, _ = text.partition("=")
    if mark and _names_secret(name):
        yield from _value(at, text, len(name) + 1, f"the value of {name[:60]}")


def _in_script(at: int, text: str) -> Iterator[Found]:
    """Yield the values of options and of a shell's variables in the text of a script."""
    for match in _TEXT_OPTION.finditer(text):
        if _is_secret_name(match[1].lstrip("-")):
            yield from _matched(at, match, 3, f"the value of {match[1][:60]}", firm=not _WORDY.match(match[3]))
    for match in _ASSIGNED.finditer(text):
        if _is_secret_name(match[1]):
            firm = bool(match[2]) or not _WORDY.match(match[3])
            yield from _matched(at, match, 3, f"the value of {match[1][:60]}", firm=firm)
    for match in _CURL_USER.finditer(text):
        yield from _matched(at, match, 1, "a password for curl")


def _matched(at: int, match: re.Match[str], group: int, kind: str, *, firm: bool = True) -> Iterator[Found]:
    value = match[group]
    if not _PLACEHOLDER.match(value) and not _PATH.search(value):
        yield Found(at, *match.span(group), kind, value, firm)


def _in_addresses(at: int, text: str) -> Iterator[Found]:
    for match in _URL.finditer(text):
        if match[2]:
            yield from _matched(at, match, 2, "a password in an address")
        elif match[2] is None and len(match[1]) >= 20 and any(char.isdigit() for char in match[1]):
            yield from _matched(at, match, 1, "a token in an address")


def _by_format(at: int, text: str) -> Iterator[Found]:
    """Yield what has the form of a token that some service hands out, wherever it stands."""
    if not any(map(_may_be_token, _CANDIDATE.findall(text))):
        return  # so that most commands do not even load the library
    yield from (Found(at, *match.span(1), "a service's token", match[1]) for match in _NEWER.finditer(text))
    for line in text.splitlines():
        for kind, value in finds(_plugins(), line):
            # The library tells some kinds by their first letters alone: what stands around them is part of it.
            for start, end in _around(text, value):
                word = text[start:end]
                if len(word) >= 16 and any(map(str.isdigit, word)) and not _in_digest(word, value):
                    yield Found(at, start, end, kind, word)


def _may_be_token(run: str) -> bool:
    """Tell whether a word has a piece of ten characters or more in which letters and digits are mixed."""
    if _PLAIN_DIGEST.match(run):
        return False
    pieces = [piece for piece in _JOINTS.split(run) if len(piece) >= 10]
    return any(any(map(str.isdigit, piece)) and any(map(str.isalpha, piece)) for piece in pieces)


def _in_digest(word: str, value: str) -> bool:
    """Tell whether a find is a part of a digest, in which any four letters stand sooner or later."""
    return any(
        value in piece and len(piece) > len(value) and _PLAIN_DIGEST.match(piece) for piece in _JOINTS.split(word)
    )


def _around(text: str, value: str) -> Iterator[tuple[int, int]]:
    """Yield the beginning and end of the words in which a value stands."""
    start = text.find(value)
    while start >= 0:
        end = start + len(value)
        while start > 0 and _IN_TOKEN.match(text[start - 1]):
            start -= 1
        while end < len(text) and _IN_TOKEN.match(text[end]):
            end += 1
        yield start, end
        start = text.find(value, end)


@cache
def _plugins() -> Sequence[BasePlugin]:
    return detectors(_LEFT_OUT)
