"""What reviewers behind command lines have in common: a hermetic environment, a scratch folder, limits (§9 [D31])."""

from __future__ import annotations

import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from troth.backends.asking import failure_of
from troth.backends.instruction import Enclosed, enclose
from troth.backends.protocol import MOST_INPUT, MOST_SCHEMA, Answer, End, Failure, Kind, ModelBasis, Request
from troth.backends.supervise import Supervised
from troth.core.errors import Refused
from troth.core.words import printable
from troth.review.formats import heard

EFFORTS: Final = ("none", "low", "medium", "high", "xhigh")
SPEEDS: Final = ("standard", "fast")

PASSED_ON: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
    "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy",
    "SYSTEMROOT", "PATHEXT", "COMSPEC", "APPDATA", "LOCALAPPDATA", "USERPROFILE",
)  # fmt: skip
"""Variables that any reviewer's program inherits. A proxy carries the encrypted connection on and ends it nowhere, so
the endpoint that was consented to is still the one that reads; keys and tokens of others are not among them."""

ESCAPED: Final = "Something that the reviewer's program started left its process group, and may still run."

_OFF: Final = ("", "0", "false", "off", "no")
_LAST_WORDS: Final = 300
_MOST_COUNT: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class Scratch:
    """Folders of one call, all 0700 and gone afterwards: the working directory is empty; ``own`` is for our files."""

    work: Path
    own: Path
    temporary: Path


@contextmanager
def scratch() -> Iterator[Scratch]:
    """Make the folders of one call and remove them with all that was left in them."""
    top = Path(tempfile.mkdtemp(prefix="troth-review-"))  # 0700, whatever the umask
    try:
        folders = Scratch(top / "work", top / "own", top / "tmp")
        for folder in (folders.work, folders.own, folders.temporary):
            folder.mkdir(mode=0o700)
        yield folders
    finally:
        shutil.rmtree(top, ignore_errors=True)


class CommandLine(ABC):
    """A reviewer behind a command line: what does not differ from one to the other.

    Args:
        around: our environment.
        url: another service that speaks the same protocol; ``None`` for the provider's own.
        providers: suffix of a host -> provider, from the user's settings (§10).

    Raises:
        Refused: ``E_ENDPOINT`` for an address that is none.
    """

    name: ClassVar[str]
    own_endpoint: ClassVar[str]
    own_provider: ClassVar[str]
    efforts: ClassVar[tuple[str, ...]] = EFFORTS
    speeds: ClassVar[tuple[str, ...]] = SPEEDS
    sandboxed: bool = False
    kind: Kind = "cli"

    def __init__(
        self,
        around: Mapping[str, str] | None = None,
        url: str | None = None,
        *,
        providers: Mapping[str, str] | None = None,
    ) -> None:
        self._around = dict(os.environ if around is None else around)
        self._url = url
        self.endpoint = self.own_endpoint
        self.provider: str | None = self.own_provider
        if url is not None:
            from troth.backends.endpoint import endpoint_key
            from troth.backends.independence import provider_of

            self.endpoint = endpoint_key(url)
            self.provider = provider_of(self.endpoint, providers or {})

    def usable(self) -> str | None:
        """Return ``None``, or what is missing or in the way."""
        if program_at(self.name, self._around) is None:
            return f"there is no program {self.name} on the search path"
        return self._routed_elsewhere()

    def ask(self, request: Request) -> Answer:
        """Ask once.

        Raises:
            Refused: ``E_BACKEND_OPTION``.
        """
        check_options(self.name, request, self.efforts, self.speeds)
        elsewhere = self._routed_elsewhere()
        if elsewhere is not None:
            return answer_of(request, failure_of("consent_denied", elsewhere))
        failure = unsendable(request)
        if failure is not None:
            return answer_of(request, failure)
        program = program_at(self.name, self._around) or self.name
        enclosed = enclose(request.instruction, request.payload)
        try:
            with scratch() as folders:
                return self._called(program, request, enclosed, folders)
        except OSError as fault:
            why = fault.strerror or str(fault)
            return answer_of(request, failure_of("backend_error", f"the call's own files cannot be kept: {why}"))

    @abstractmethod
    def _routed_elsewhere(self) -> str | None:
        """Return why the endpoint that is told would not be the one that is reached, or ``None`` (§9)."""

    @abstractmethod
    def _called(self, program: str, request: Request, enclosed: Enclosed, folders: Scratch) -> Answer:
        """Run the program in the folders of this call and return what came of it."""


def environment_of(around: Mapping[str, str], keys: tuple[str, ...], temporary: Path) -> dict[str, str]:
    """Return the environment of a reviewer's program: what is passed on, its own provider's keys, no more.

    Args:
        around: our own environment.
        keys: variables that this program needs beyond :data:`PASSED_ON`.
        temporary: its folder for temporary files.
    """
    kept = {name: around[name] for name in (*PASSED_ON, *keys) if name in around}
    return kept | dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(temporary))


def is_on(value: str | None) -> bool:
    """Tell whether a variable that switches something on does so."""
    return value is not None and value.strip().lower() not in _OFF


def program_at(name: str, around: Mapping[str, str]) -> str | None:
    """Return the absolute path of a program that the search path leads to, or ``None``."""
    found = shutil.which(name, path=around.get("PATH", os.defpath))
    return None if found is None else str(Path(found).absolute())


def check_options(
    name: str, request: Request, efforts: tuple[str, ...] = EFFORTS, speeds: tuple[str, ...] = SPEEDS
) -> None:
    """Hold effort, speed, model and limits against what the backend takes; a flag cannot be slipped in as a value.

    Raises:
        Refused: ``E_BACKEND_OPTION``.
    """
    for what, value, allowed in (("effort", request.effort, efforts), ("speed", request.speed, speeds)):
        if value is not None and value not in allowed:
            raise Refused(
                "E_BACKEND_OPTION",
                f"{name} has no {what} {printable(value, 60)!r}",
                remedy=f"It is one of {', '.join(allowed)}.",
            )
    model = request.model
    if model is not None and (not model or model.startswith("-") or not model.isprintable() or len(model) > 200):
        raise Refused("E_BACKEND_OPTION", f"{printable(model, 60)!r} is no name of a model")
    if not (request.wall > 0 and request.idle > 0):
        raise Refused("E_BACKEND_OPTION", "wall and idle limits are positive numbers of seconds")


def unsendable(request: Request) -> Failure | None:
    """Return why a request is not sent at all, or ``None``."""
    if len(request.payload) > MOST_INPUT:
        return failure_of(
            "backend_error", f"the artifact has {len(request.payload)} bytes; at most {MOST_INPUT} are sent"
        )
    if len(request.instruction.encode("utf-8", "surrogatepass")) > MOST_SCHEMA:
        return failure_of("backend_error", f"the instruction has more than {MOST_SCHEMA} bytes")
    try:
        request.payload.decode("utf-8")
        request.instruction.encode("utf-8")
    except UnicodeError:
        return failure_of("backend_error", "the artifact is no text in UTF-8, and this reviewer takes nothing else")
    return None


def not_completed(done: Supervised) -> Failure | None:
    """Return the failure of a program that did not end by itself, or ``None``."""
    came = "some output came" if done.received else "not a byte came"
    match done.end:
        case "completed":
            return None
        case "wall_timeout":
            return failure_of("timeout", f"the reviewer took longer than it may; {came}, and nothing of it is reusable")
        case "idle_timeout":
            return failure_of("timeout", f"the reviewer was silent for too long; {came}, and nothing of it is reusable")
        case "termination_failed":
            return failure_of("backend_error", "the reviewer's program could not be ended and may still run")
        case "spawn_error":
            return failure_of("backend_error", f"the reviewer's program could not be started: {done.why}")


def last_words(done: Supervised) -> str:
    """Return how a program ended badly, with its last line about an error made harmless; that classifies nothing."""
    status = done.exit or 0
    ended = f"was ended by signal {-status}" if status < 0 else f"ended with exit {status}"
    lines = [line.strip() for line in heard(done.stderr.decode("utf-8", "replace")).splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    said = (errors or lines or [""])[-1]
    return f"the reviewer's program {ended}" + (f": {printable(said, _LAST_WORDS)}" if said else "")


def answer_of(
    request: Request,
    outcome: bytes | Failure,
    done: Supervised | None = None,
    *,
    resolved: str | None = None,
    tokens: int | None = None,
    request_id: str | None = None,
    also_sent: int = 0,
) -> Answer:
    """Return the account of one call of a command line.

    Args:
        request: what was asked.
        outcome: the final message, or why there is none.
        done: how the program ended; ``None`` where it was not started.
        resolved: the model as the backend itself named it.
        tokens: as it reported them.
        request_id: its own id of the call.
        also_sent: bytes that it read from a file of ours.
    """
    end: End = done.end if done else "completed"
    basis: ModelBasis = "resolved" if resolved else "requested" if request.model else "backend_default"
    return Answer(
        text=outcome if isinstance(outcome, bytes) else None,
        failure=outcome if isinstance(outcome, Failure) else None,
        end=end,
        model=resolved or request.model,
        model_basis=basis,
        sent=done.sent + also_sent if done else 0,
        received=done.received if done else 0,
        tokens=tokens,
        seconds=done.seconds if done else 0.0,
        attempts=1 if done else 0,
        any_byte=bool(done and done.received),
        request_id=request_id,
        notices=(ESCAPED,) if done and done.held else (),
    )


def whole(value: object) -> int:
    """Return a count as a program reported it; what is no count, or none that could be meant, is 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_COUNT else 0


def short(value: object) -> str | None:
    """Return a name or an id as a program reported it, made harmless, or ``None`` where it is no text."""
    return printable(value, 200) if isinstance(value, str) and value else None
