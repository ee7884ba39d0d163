"""Verifying by identity, at an instance of our own and at the public one: every cheat beside an honest twin."""

from __future__ import annotations

import base64
import importlib.resources
import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sigstore", reason="the extra `sigstore` is not installed")

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from receipts.mutate import spoil
from receipts.test_receipt import sealed
from stores.test_timestamps import Authority
from support.sigstore_instance import LOGIN, WORKFLOW, Instance, b64
from troth.core.errors import NotEstablished, Refused, TrothError
from troth.receipts.bundles import CODES, parse_bundle
from troth.receipts.demands import Identity, demand
from troth.receipts.envelopes import CODES as ENVELOPE_CODES
from troth.receipts.member import MappingMember
from troth.receipts.signing import as_signed
from troth.receipts.verify import examine
from troth.stores.keyless import read_trust_config, read_trusted_root, sign_by_identity, voucher, within

RELEASE = Path(__file__).parent / "data" / "release.sigstore.json"
RELEASED_BY = Identity(
    "https://github.com/trailofbits/pypi-attestation-models/.github/workflows/release.yml@refs/tags/v0.0.4a2",
    "https://token.actions.githubusercontent.com",
)
ALICE = Identity(WORKFLOW, LOGIN)
MALLORY = Identity("mallory@example.com", LOGIN)


@dataclass
class House:
    """An instance, another one, and a valid receipt in its folder."""

    instance: Instance
    other: Instance
    files: Mapping[str, bytes]

    @property
    def receipt(self) -> bytes:
        return self.files["receipt.json"]

    def judged(self, bundle: Any, *asked: Identity, root: Path | None = None) -> str:
        """Return ``holds`` or the code with which a bundle is turned away."""
        data = bundle if isinstance(bundle, bytes) else json.dumps(bundle).encode()
        vouch = voucher(read_trusted_root(root or self.instance.trusted_root))
        try:
            as_signed(MappingMember(self.files), demand([], None, None, asked or [ALICE]), None, [data], vouch)
        except TrothError as fault:
            return fault.code
        return "holds"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("instances")
    found = House(Instance(folder / "ours"), Instance(folder / "other"), sealed())
    yield found
    found.instance.close()
    found.other.close()


def entry(bundle: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = bundle["verificationMaterial"]["tlogEntries"][0]
    return found


# --- an instance of our own ---


def test_an_honest_bundle_holds(house: House) -> None:
    bundle = house.instance.bundle(house.receipt)
    assert house.judged(bundle) == "holds"
    assert house.judged(bundle, MALLORY, ALICE) == "holds"
    assert house.judged(json.dumps(bundle, indent=4).encode()) == "holds"
    mail = house.instance.bundle(house.receipt, MALLORY.name)
    assert house.judged(mail, MALLORY) == "holds"
    assert house.judged(mail) == "E_ENVELOPE_UNVERIFIED"


def test_another_bundle_of_another_receipt_does_not_pass_for_this_one(house: House) -> None:
    assert house.judged(house.instance.bundle(house.receipt + b"\n")) == "E_ENVELOPE_OTHER"


def _payload(bundle: dict[str, Any], _: House) -> None:
    payload = base64.b64decode(bundle["dsseEnvelope"]["payload"]).replace(b"claim-1", b"claim-2")
    assert b"claim-2" in payload
    bundle["dsseEnvelope"]["payload"] = b64(payload)


def _other_leaf(bundle: dict[str, Any], house: House) -> None:
    entry(bundle)["inclusionProof"] = entry(house.instance.bundle(house.receipt))["inclusionProof"]


def _neighbour(bundle: dict[str, Any], _: House) -> None:
    proof = entry(bundle)["inclusionProof"]
    proof["logIndex"] = str(int(proof["logIndex"]) - 1)


def _grown(bundle: dict[str, Any], _: House) -> None:
    proof = entry(bundle)["inclusionProof"]
    proof["checkpoint"]["envelope"] = proof["checkpoint"]["envelope"].replace(" - 1\n", " - 2\n")


def _other_entry(bundle: dict[str, Any], house: House) -> None:
    """A log entry that is true, of the same signer and the same receipt, and of another signature."""
    bundle["verificationMaterial"]["tlogEntries"] = [entry(house.instance.bundle(house.receipt))]


def _later(bundle: dict[str, Any], _: House) -> None:
    entry(bundle)["integratedTime"] = str(int(entry(bundle)["integratedTime"]) + 30)


def _other_log(bundle: dict[str, Any], house: House) -> None:
    bundle["verificationMaterial"]["tlogEntries"] = [entry(house.other.bundle(house.receipt))]


def _other_certificate(bundle: dict[str, Any], house: House) -> None:
    """A certificate that is true, of the same identity, and of another key."""
    twin = house.instance.bundle(house.receipt)
    bundle["verificationMaterial"]["certificate"] = twin["verificationMaterial"]["certificate"]


def _signature(bundle: dict[str, Any], house: House) -> None:
    bundle["dsseEnvelope"]["signatures"] = house.instance.bundle(house.receipt)["dsseEnvelope"]["signatures"]


CHANGED = [_payload, _other_leaf, _neighbour, _grown, _other_entry, _later, _other_log, _other_certificate, _signature]


@pytest.mark.parametrize("change", CHANGED, ids=[one.__name__.strip("_") for one in CHANGED])
def test_what_was_changed_after_signing_is_invalid(house: House, change: Callable[..., None]) -> None:
    bundle = house.instance.bundle(house.receipt)
    assert house.judged(bundle) == "holds"
    change(bundle, house)
    assert house.judged(bundle) == "E_ENVELOPE_SIGNATURE"
    # Anybody can spoil a bundle that names somebody: to a reader who trusts others it is a stranger's.
    assert house.judged(bundle, MALLORY) == "E_ENVELOPE_UNVERIFIED"


def test_a_type_that_was_changed_or_signed_otherwise_is_invalid(house: House) -> None:
    bundle = house.instance.bundle(house.receipt)
    bundle["dsseEnvelope"]["payloadType"] = "application/json"
    assert house.judged(bundle) == "E_ENVELOPE_TYPE"
    # Also where the signature is good, and before anybody looks at it or at the payload.
    honest = house.instance.bundle(b"\xff no JSON", payload_type="application/json")
    assert house.judged(honest) == "E_ENVELOPE_TYPE"
    assert house.judged(honest, root=house.other.trusted_root) == "E_ENVELOPE_TYPE"


NOT_VOUCHED: list[tuple[str, dict[str, Any]]] = [
    ("expired at the log's time", {"valid_from": timedelta(minutes=-20)}),
    ("not yet valid at the log's time", {"valid_from": timedelta(minutes=5)}),
    ("no place in the log of certificates", {"with_sct": False}),
    ("not for signing", {"code_signing": False}),
    ("no issuer", {"issuers": (None, None)}),
    ("two issuers", {"issuers": (LOGIN, "https://other.example.com")}),
    ("two issuers, turned round", {"issuers": ("https://other.example.com", LOGIN)}),
    ("another issuer", {"issuers": (f"{LOGIN}/", f"{LOGIN}/")}),
    ("in other letters", {"names": (WORKFLOW.replace("release", "Release"),)}),
    ("with something after it", {"names": (f"{WORKFLOW}2",)}),
    ("with something before it", {"names": (f"https://example.org/?{WORKFLOW}",)}),
    ("two names", {"names": (WORKFLOW, "mallory@example.com")}),
    ("two names, turned round", {"names": ("mallory@example.com", WORKFLOW)}),
]


@pytest.mark.parametrize("asked", [row[1] for row in NOT_VOUCHED], ids=[row[0] for row in NOT_VOUCHED])
def test_an_identity_for_which_nobody_vouches_is_unverified(house: House, asked: dict[str, Any]) -> None:
    assert house.judged(house.instance.bundle(house.receipt, **asked)) == "E_ENVELOPE_UNVERIFIED"


@pytest.mark.parametrize("issuers", [(LOGIN, None), (None, LOGIN), (LOGIN, LOGIN)])
def test_the_issuer_is_read_from_either_extension(house: House, issuers: tuple[str | None, str | None]) -> None:
    assert house.judged(house.instance.bundle(house.receipt, issuers=issuers)) == "holds"


def test_another_instance_vouches_for_nobody_here(house: House) -> None:
    bundle = house.other.bundle(house.receipt)
    assert house.judged(bundle, root=house.other.trusted_root) == "holds"
    assert house.judged(bundle) == "E_ENVELOPE_UNVERIFIED"
    vouch = voucher(read_trusted_root(house.instance.trusted_root))
    assert "no trusted authority vouches" in vouch(json.dumps(bundle).encode()).reason


def test_two_readings_of_one_bundle_are_refused(house: House) -> None:
    bundle = house.instance.bundle(house.receipt)
    stranger = house.instance.bundle(b"{}", MALLORY.name)
    for first, second in (("dsseEnvelope", "dsse_envelope"), ("dsse_envelope", "dsseEnvelope")):
        both = {**bundle, first: bundle["dsseEnvelope"], second: stranger["dsseEnvelope"]}
        assert parse_bundle(json.dumps(both).encode())
        assert house.judged(both, ALICE, MALLORY) == "E_BUNDLE_MALFORMED"


def test_a_bundle_that_is_broken_off_or_broken_inside_is_malformed(house: House) -> None:
    bundle = house.instance.bundle(house.receipt)
    text = json.dumps(bundle).encode()
    assert house.judged(text[:-40]) == "E_BUNDLE_MALFORMED"
    bundle["verificationMaterial"]["certificate"]["rawBytes"] = "AAAA"
    assert house.judged(bundle) == "E_BUNDLE_MALFORMED"
    bundle = house.instance.bundle(house.receipt)
    del entry(bundle)["inclusionProof"]
    assert house.judged(bundle) == "E_BUNDLE_MALFORMED"


def test_a_spoilt_bundle_never_holds_as_something_else(house: House) -> None:
    honest = json.dumps(house.instance.bundle(house.receipt)).encode()
    bare = MappingMember({name: held for name, held in house.files.items() if name != "receipt.json"})
    vouch = voucher(read_trusted_root(house.instance.trusted_root))
    asked = demand([], None, None, [ALICE])
    came = Counter[str]()
    for seed in range(120):
        try:
            member, _ = as_signed(bare, asked, None, [spoil(honest, random.Random(seed))], vouch)
        except TrothError as fault:
            came[fault.code] += 1
        else:
            came["holds" if member.read("receipt.json") == house.receipt else "another"] += 1
    assert set(came) <= {"holds", *CODES, *ENVELOPE_CODES}
    assert came["E_BUNDLE_MALFORMED"]
    assert came["E_ENVELOPE_SIGNATURE"]


# --- a log of the second version, which tells no times, and an authority that does ---


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    folder = tmp_path_factory.mktemp("second")
    authority = Authority(folder / "tsa")
    chain = [x509.load_pem_x509_certificate(file.read_bytes()) for file in (folder / "tsa" / "tsa.pem", authority.root)]
    der = tuple(one.public_bytes(serialization.Encoding.DER) for one in chain)
    found = Instance(folder / "instance", authority.answer, der)
    yield found
    found.close()


def test_a_log_of_the_second_version_needs_a_timestamp(house: House, second: Instance, tmp_path: Path) -> None:
    data, said = sign_by_identity(house.receipt, second.token(), read_trust_config(second.trust_config))
    assert (second.requests, second.faults) == (["/api/v2/signingCert", "/timestamp", "/api/v2/log/entries"], [])
    assert (said.name, said.issuer) == (WORKFLOW, LOGIN)
    bundle = json.loads(data)
    assert entry(bundle)["kindVersion"] == {"kind": "hashedrekord", "version": "0.0.2"}
    assert house.judged(data, root=second.trusted_root) == "holds"
    # The same bundle without its time, with another's, and by a root that knows no authority.
    bare = json.loads(data)
    bare["verificationMaterial"]["timestampVerificationData"] = {}
    assert house.judged(bare, root=second.trusted_root) == "E_BUNDLE_MALFORMED"
    other = json.loads(
        sign_by_identity(house.receipt + b"\n", second.token(), read_trust_config(second.trust_config))[0]
    )
    swapped = json.loads(data)
    stamps = other["verificationMaterial"]["timestampVerificationData"]
    swapped["verificationMaterial"]["timestampVerificationData"] = stamps
    assert house.judged(swapped, root=second.trusted_root) == "E_ENVELOPE_UNVERIFIED"
    rootless = tmp_path / "root.json"
    rootless.write_text(json.dumps({**second.root_json(), "timestampAuthorities": []}))
    assert house.judged(data, root=rootless) == "E_ENVELOPE_UNVERIFIED"
    # And with the entry, or the payload, of the other one.
    swapped = json.loads(data)
    swapped["verificationMaterial"]["tlogEntries"] = other["verificationMaterial"]["tlogEntries"]
    assert house.judged(swapped, root=second.trusted_root) == "E_ENVELOPE_SIGNATURE"
    swapped = json.loads(data)
    swapped["dsseEnvelope"]["payload"] = other["dsseEnvelope"]["payload"]
    assert house.judged(swapped, root=second.trusted_root) == "E_ENVELOPE_SIGNATURE"


# --- the public instance ---


def public_root(host: str) -> Path:
    """The trusted root that the client library carries, of the public instance or of its staging twin."""
    found = (
        importlib.resources.files("sigstore._store") / f"https%3A%2F%2Ftuf-repo-cdn.{host}.dev" / "trusted_root.json"
    )
    assert isinstance(found, Path)
    return found


def test_a_real_bundle_verifies_and_is_no_receipt(house: House) -> None:
    data = RELEASE.read_bytes()
    root = public_root("sigstore")
    said = voucher(read_trusted_root(root))(data)
    assert (said.name, said.issuer, said.fits) == (RELEASED_BY.name, RELEASED_BY.issuer, True)
    assert said.signed is not None
    assert json.loads(said.signed[1])["_type"] == "https://in-toto.io/Statement/v1"
    # Beside a receipt it is another one; alone it is a Statement of another kind.
    assert house.judged(data, RELEASED_BY, root=root) == "E_ENVELOPE_OTHER"
    bare = MappingMember({name: held for name, held in house.files.items() if name != "receipt.json"})
    asked = demand([], None, None, [RELEASED_BY])
    member, _ = as_signed(bare, asked, None, [data], voucher(read_trusted_root(root)))
    assert examine(member).result["receipt"] == {"verdict": "invalid", "code": "receipt_predicate_type_wrong"}
    # By the twin's root, by ours, or asked for in other letters it is nobody's.
    assert house.judged(data, RELEASED_BY, root=public_root("sigstage")) == "E_ENVELOPE_UNVERIFIED"
    assert house.judged(data, RELEASED_BY) == "E_ENVELOPE_UNVERIFIED"
    other = Identity(RELEASED_BY.name.replace("a2", "a1"), RELEASED_BY.issuer)
    assert house.judged(data, other, root=root) == "E_ENVELOPE_UNVERIFIED"


def test_a_real_bundle_with_another_payload_is_invalid(house: House) -> None:
    bundle = json.loads(RELEASE.read_bytes())
    bundle["dsseEnvelope"]["payload"] = b64(house.receipt)
    assert house.judged(bundle, RELEASED_BY, root=public_root("sigstore")) == "E_ENVELOPE_SIGNATURE"


# --- roots, and waiting ---


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b'{"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1"}',
        b'{"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=9"}',
        b'{"mediaType": "a", "mediaType": "b"}',
    ],
)
def test_what_is_no_root_is_refused(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "root.json"
    file.write_bytes(data)
    with pytest.raises(Refused) as fault:
        voucher(read_trusted_root(file))
    assert fault.value.code == "E_SIGSTORE_ROOT"
    with pytest.raises(Refused) as fault:
        read_trust_config(file)
    assert fault.value.code == "E_SIGSTORE_ROOT"
    with pytest.raises(Refused) as fault:
        read_trusted_root(tmp_path / "absent")
    assert fault.value.code == "E_SIGSTORE_ROOT"


def test_a_root_without_a_log_or_an_authority_vouches_for_nobody(house: House, tmp_path: Path) -> None:
    bundle = house.instance.bundle(house.receipt)
    for part in ("tlogs", "certificateAuthorities", "ctlogs"):
        file = tmp_path / f"{part}.json"
        file.write_text(json.dumps({**house.instance.root_json(), part: []}))
        try:
            came = house.judged(bundle, root=file)
        except Refused as fault:
            came = fault.code
        assert came in {"E_ENVELOPE_UNVERIFIED", "E_SIGSTORE_ROOT"}


def test_nobody_waits_for_ever() -> None:
    import threading

    gate = threading.Event()
    assert within(lambda: 1) == 1
    with pytest.raises(NotEstablished) as fault:
        within(gate.wait, 0.05)
    assert fault.value.code == "E_SIGSTORE_UNREACHABLE"
    gate.set()
    with pytest.raises(KeyError):
        within(lambda: {}["absent"])
