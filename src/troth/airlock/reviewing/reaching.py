"""From a reviewer's name to a question that may leave: its independence, its manifest, consent (§§9-10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from troth.airlock.reviewers import consent_store, metrics, settings, survey
from troth.airlock.reviewing.session import Session, Setup
from troth.backends.asking import Asked, ask
from troth.backends.consent import Consent, consent, denied
from troth.backends.independence import detect, notices, self_review, tier_of
from troth.backends.instruction import compose, compose_rebuttal
from troth.backends.manifest import Manifest, manifest
from troth.backends.metrics import row_of
from troth.backends.opening import open_backend
from troth.backends.protocol import MOST_MESSAGE, Answer, Backend, Kind, Request
from troth.backends.secrets import Suspicion, suspicions
from troth.core.errors import Refused
from troth.review import schemas
from troth.review.artifact import Artifact
from troth.stores.durable import read_regular
from troth.stores.workspace import absolute

SCRIPTED: Final = "scripted:"
NO_MODEL: Final = "SCRIPTED: the answers stand in a file. No model reads what is reviewed."
"""Comes first wherever a scripted reviewer's answers are told."""

SELF: Final = "self"
"""The name under which a host's own review is kept."""


@dataclass(frozen=True, slots=True)
class Reviewer:
    """A reviewer that was opened: the words by which it can be opened again, and how independent it is of the host."""

    asked: str
    backend: Backend
    independence: Mapping[str, Any]

    def described(self) -> dict[str, Any]:
        """Return what a run keeps of it."""
        backend = self.backend
        return {
            "asked": self.asked, "name": backend.name, "kind": SELF if backend.name == SELF else backend.kind,
            "endpoint": backend.endpoint,
            "provider": backend.provider, "sandboxed": backend.sandboxed,
        }  # fmt: skip


def reach(named: str | None, environment: Mapping[str, str], *, rules: bool = False) -> Reviewer:
    """Return the reviewer that was named, or the most independent one that is usable. Nothing is sent.

    Raises:
        Refused: ``E_BACKEND_UNUSABLE`` when it, or every one, lacks something; and why a name or an address is none.
    """
    if named is None:
        named = _chosen(environment)
    elif named.startswith(SCRIPTED) and len(named) > len(SCRIPTED):
        named = SCRIPTED + str(absolute(Path(named.removeprefix(SCRIPTED))))
    backend = open_backend(named, around=environment, providers=settings().providers, rules=rules)
    if (missing := backend.usable()) is not None:
        raise Refused("E_BACKEND_UNUSABLE", f"the reviewer {backend.name} is not usable: {missing}")
    host = detect(environment)
    tier = tier_of(host, backend.provider)
    told = [*([NO_MODEL] if backend.kind == "scripted" else []), *notices(tier, host)]
    return Reviewer(named, backend, {**host.as_json(), "tier": tier, "notices": told})


def _chosen(environment: Mapping[str, str]) -> str:
    found = survey((), environment)
    if found.chosen is None:
        lacks = "; ".join(f"{one.named}: {one.missing}" for one in found.known)
        alone = found.alone and found.self_review is None
        raise Refused(
            "E_BACKEND_UNUSABLE",
            f"no reviewer is usable ({lacks})",
            remedy="Set one up, or name one with --backend."
            + (
                " Where none can be had, --self-review FILE keeps the host's own review as what it is." if alone else ""
            ),
        )
    return found.chosen


@dataclass(frozen=True, slots=True)
class OwnReview:
    """The host's own review of its own work, from a file: a backend that sends nothing anywhere."""

    path: Path
    name: str = SELF
    kind: Kind = "scripted"
    endpoint: str = SELF
    provider: str | None = None
    sandboxed: bool = False

    def usable(self) -> str | None:
        """Return ``None``: the file is there or is not."""
        return None

    def ask(self, request: Request) -> Answer:
        """Return what the file holds."""
        text = read_regular(self.path, MOST_MESSAGE, "E_REVIEW_MISSING", "the host's own review")
        return Answer(
            text=text, failure=None, end="completed", model=None, model_basis="backend_default", sent=0,
            received=len(text), tokens=0, seconds=0.0, attempts=1, any_byte=True, request_id=None,
        )  # fmt: skip


def reach_self(path: str, kind: str, environment: Mapping[str, str]) -> Reviewer:
    """Return the host's own review as a reviewer of the lowest tier, its notice first (§10).

    Raises:
        Refused: ``E_SELF_REVIEW`` where a reviewer is usable, for code, and where it is not positively known that none
            can be started.
    """
    host = detect(environment)
    able = [one.named for one in survey((), environment).known if one.missing is None]
    told = self_review(environment, host, kind, able)
    backend = OwnReview(absolute(Path(path)))
    return Reviewer(f"{SELF}:{backend.path}", backend,
                    {**host.as_json(), "tier": "self_review", "notices": list(told)})  # fmt: skip


def reach_again(setup: Setup, environment: Mapping[str, str]) -> Backend:
    """Return the reviewer of a run; another one, or another address, is not what the run was set up with.

    Raises:
        Refused: as :func:`reach`; ``E_BACKEND_UNUSABLE`` when it would be asked elsewhere now.
    """
    if setup.backend["name"] == SELF:
        raise Refused(
            "E_SELF_REVIEW", "the host reviewed its own work: there is nobody to ask",
            remedy="Escalate what you cannot settle: troth review escalate",
        )  # fmt: skip
    again = reach(setup.backend["asked"], environment)
    if again.backend.endpoint != setup.backend["endpoint"]:
        raise Refused(
            "E_BACKEND_UNUSABLE",
            f"the run was set up with {setup.backend['endpoint']}, and its reviewer is reached at "
            f"{again.backend.endpoint} now",
        )
    return again.backend


def instruction_for(kind: str, lens: str | None) -> str:
    """Return stance, lens and schema of a review."""
    return compose(kind, lens)


def rebuttal_instruction() -> str:
    """Return stance and schema of a rebuttal."""
    return compose_rebuttal()


def review_manifest(key: str, artifact: Artifact, instruction: str) -> Manifest:
    """Return what a review sends: members, instruction and schema."""
    schema = schemas.text("response")
    return manifest(
        key, artifact.payload, ((member.path, member.data) for member in artifact.members.values()),
        instruction=_without(instruction, schema), schema=schema,
    )  # fmt: skip


def rebuttal_manifest(key: str, document: bytes, instruction: str) -> Manifest:
    """Return what a rebuttal sends: the contest's document, instruction and schema."""
    schema = schemas.text("response")
    return manifest(key, b"", (), instruction=_without(instruction, schema), schema=schema, rebuttal=document)


def _without(instruction: str, schema: bytes) -> bytes:
    """Return the instruction without the schema that is part of it."""
    return instruction.encode().replace(schema, b"", 1)


def warnings(artifact: Artifact, lens: str | None) -> list[Suspicion]:
    """Return the places of what is about to leave that look like secrets."""
    pieces = [(member.path, member.data) for member in artifact.members.values()]
    return suspicions([*pieces, *([("the lens", lens.encode())] if lens else [])])


def asked_consent(key: str, approved: Iterable[str], environment: Mapping[str, str]) -> Consent:
    """Return whether anything may be sent to the key; it blocks by default."""
    return consent(key, approved=approved, environment=environment, grants=consent_store().grants())


def require_consent(key: str, approved: Iterable[str], environment: Mapping[str, str]) -> Consent:
    """Return the consent under which something may be sent.

    Raises:
        Refused: ``consent_denied``.
    """
    found = asked_consent(key, approved, environment)
    if not found.given:
        raise denied(found)
    return found


NOTHING_LEAVES: Final = {"key": SELF, "basis": "none", "reason": "nothing leaves: the host reviewed its own work"}
"""The consent of a self-review."""


def approvals(setup: Setup, approved: Iterable[str]) -> list[str]:
    """Return the keys approved for a run: now, and when it was set up."""
    before = setup.consent
    return [*approved, *([before["key"]] if before.get("basis") == "run" else [])]


def metered(session: Session, *, rebuttal: bool = False) -> Callable[..., Asked]:
    """Return what asks, and keeps sizes and times of it apart from the run; no word of the artifact among them."""

    def asking(backend: Backend, request: Request, **given: Any) -> Asked:
        at = session.now()
        asked = ask(backend, request, **given)
        document = asked.document or {}
        if backend.name == SELF:
            return asked
        metrics().record(row_of(
            at=at, backend=backend.name, endpoint=backend.endpoint, request=request, answer=asked.answer,
            payload_sha256=session.artifact.digest,
            model=getattr(backend, "model", None), kind=session.setup.kind, members=len(session.setup.members),
            tier=session.setup.independence.get("tier"), host=session.setup.independence.get("host"),
            rebuttal=rebuttal, assessment=None if rebuttal else document.get("assessment"),
            findings=None if rebuttal or not document else len(document.get("findings", ())),
        ))  # fmt: skip
        return asked

    return asking


def workspace_root(root: Path | None) -> str | None:
    """Return the folder that commands run on a copy of, as a run keeps it."""
    return str(root) if root is not None else None
