"""From a reviewer's name to a question that may leave: its independence, its manifest, consent (§§9-10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from troth.airlock.reviewers import consent_store, metrics, settings
from troth.airlock.reviewing.session import Session, Setup
from troth.backends.asking import Asked, ask
from troth.backends.consent import Consent, consent, denied
from troth.backends.independence import Candidate, choose, detect, notices, tier_of
from troth.backends.instruction import compose, compose_rebuttal
from troth.backends.manifest import Manifest, manifest
from troth.backends.metrics import row_of
from troth.backends.opening import open_backend
from troth.backends.protocol import Backend, Request
from troth.backends.secrets import Suspicion, suspicions
from troth.core.errors import Refused
from troth.review import schemas
from troth.review.artifact import Artifact
from troth.stores.workspace import absolute

SCRIPTED: Final = "scripted:"
AUTOMATIC: Final = ("codex", "claude")
"""The reviewers among which one is chosen when none is named."""


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
            "asked": self.asked, "name": backend.name, "kind": backend.kind, "endpoint": backend.endpoint,
            "provider": backend.provider, "sandboxed": backend.sandboxed,
        }  # fmt: skip


def reach(named: str | None, environment: Mapping[str, str], *, rules: bool = False) -> Reviewer:
    """Return the reviewer that was named, or the most independent one that is usable. Nothing is sent.

    Raises:
        Refused: ``E_BACKEND_UNUSABLE`` when it, or every one, lacks something; and why a name or an address is none.
    """
    providers = settings().providers
    host = detect(environment)
    if named is None:
        opened = {name: open_backend(name, around=environment, providers=providers) for name in AUTOMATIC}
        candidates = [
            Candidate(name, each.kind, each.provider, each.sandboxed, each.usable()) for name, each in opened.items()
        ]
        best = choose(candidates, host)
        if best is None:
            lacks = "; ".join(f"{one.name}: {one.missing}" for one in candidates)
            raise Refused("E_BACKEND_UNUSABLE", f"no reviewer is usable ({lacks})", remedy="Name one with --backend.")
        named = best.name
    elif named.startswith(SCRIPTED) and len(named) > len(SCRIPTED):
        named = SCRIPTED + str(absolute(Path(named.removeprefix(SCRIPTED))))
    backend = open_backend(named, around=environment, providers=providers, rules=rules)
    if (missing := backend.usable()) is not None:
        raise Refused("E_BACKEND_UNUSABLE", f"the reviewer {backend.name} is not usable: {missing}")
    tier = tier_of(host, backend.provider)
    return Reviewer(named, backend, {**host.as_json(), "tier": tier, "notices": list(notices(tier, host))})


def reach_again(setup: Setup, environment: Mapping[str, str]) -> Backend:
    """Return the reviewer of a run; another one, or another address, is not what the run was set up with.

    Raises:
        Refused: as :func:`reach`; ``E_BACKEND_UNUSABLE`` when it would be asked elsewhere now.
    """
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
