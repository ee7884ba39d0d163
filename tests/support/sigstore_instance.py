"""A sigstore instance of our own: certificate authority, certificate log, transparency log, token issuer.

A small server on the loopback plays Fulcio and Rekor, in both versions of its API, and a timestamp authority where one
is given. It checks what a client sends as the real ones do: the token's issuer, signature, audience and times, the
request's proof that its key is held, the signature over the envelope. What it answers is built here from the standards
alone (RFC 5280, RFC 6962, C2SP notes), not with the client library that is under test.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SCT_LIST = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
ISSUER_OLD = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
ISSUER = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.8")

HOST = "127.0.0.1"
"""Where its services are, and by that its log's name, as Rekor's is."""

WORKFLOW = "https://example.com/shop/.workflows/release.yml@refs/heads/main"
LOGIN = "https://login.example.com"


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def der(tag: int, body: bytes) -> bytes:
    size = len(body)
    if size < 128:
        return bytes([tag, size]) + body
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + body


def spki(key: ec.EllipticCurvePrivateKey) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.DER, form)


def sign(key: ec.EllipticCurvePrivateKey, data: bytes) -> bytes:
    return key.sign(data, ec.ECDSA(hashes.SHA256()))


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def pae(kind: str, payload: bytes) -> bytes:
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)


# --- the transparency log: a Merkle tree of RFC 6962 ---


def leaf_hash(body: bytes) -> bytes:
    return hashlib.sha256(b"\0" + body).digest()


def split(size: int) -> int:
    """The largest power of two below a size."""
    return 1 << ((size - 1).bit_length() - 1)


def root_of(leaves: list[bytes]) -> bytes:
    if len(leaves) == 1:
        return leaves[0]
    k = split(len(leaves))
    return hashlib.sha256(b"\1" + root_of(leaves[:k]) + root_of(leaves[k:])).digest()


def path_to(index: int, leaves: list[bytes]) -> list[bytes]:
    if len(leaves) == 1:
        return []
    k = split(len(leaves))
    if index < k:
        return [*path_to(index, leaves[:k]), root_of(leaves[k:])]
    return [*path_to(index - k, leaves[k:]), root_of(leaves[:k])]


@dataclass
class Asked:
    """What a test may want otherwise than an honest instance has it; each is looked at when something is made."""

    issuers: tuple[str | None, str | None] = (LOGIN, LOGIN)
    """What the older and the newer extension say; ``None`` leaves it out."""
    valid_from: timedelta = timedelta(minutes=-1)
    valid_for: timedelta = timedelta(minutes=10)
    with_sct: bool = True
    code_signing: bool = True
    names: tuple[str, ...] | None = None
    status: int = 200
    body: Callable[[bytes], bytes] = bytes


class Instance:
    """One instance with keys of its own. ``now`` is the time of its clocks.

    With a ``stamper`` its log is of version 2, which tells no times, and that authority does; ``stampers`` are its
    certificates, its own first, in DER.
    """

    def __init__(
        self, folder: Path, stamper: Callable[[bytes], bytes] | None = None, stampers: tuple[bytes, ...] = ()
    ) -> None:
        self.stamper, self.stampers = stamper, stampers
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.now = datetime.now(UTC).replace(microsecond=0)
        self.asked = Asked()
        self.root_key, self.ca_key = new_key(), new_key()
        self.ct_key, self.log_key, self.issuer_key = new_key(), new_key(), new_key()
        self.root = self._authority("root", self.root_key, None)
        self.ca = self._authority("intermediate", self.ca_key, (self.root, self.root_key))
        self.leaves = [f"entry {number}".encode() for number in range(5)]
        self.requests: list[str] = []
        self.faults: list[str] = []
        self._server = ThreadingHTTPServer((HOST, 0), self._handler())
        self.url = f"http://{HOST}:{self._server.server_address[1]}"
        threading.Thread(target=lambda: self._server.serve_forever(0.01), daemon=True).start()
        self.trusted_root = folder / "trusted_root.json"
        self.trusted_root.write_text(json.dumps(self.root_json()))
        self.trust_config = folder / "config.json"
        self.trust_config.write_text(json.dumps(self.config_json()))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    # --- what its keepers publish ---

    def root_json(self) -> dict[str, Any]:
        since = {"start": "2020-01-01T00:00:00Z"}

        def log(key: ec.EllipticCurvePrivateKey) -> dict[str, Any]:
            public = spki(key)
            return {
                "baseUrl": self.url,
                "hashAlgorithm": "SHA2_256",
                "publicKey": {"rawBytes": b64(public), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": since},
                "logId": {"keyId": b64(hashlib.sha256(public).digest())},
            }

        chain = [one.public_bytes(serialization.Encoding.DER) for one in (self.ca, self.root)]
        return {
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [log(self.log_key)],
            "certificateAuthorities": [
                {
                    "subject": {"organization": "example", "commonName": "root"},
                    "uri": self.url,
                    "certChain": {"certificates": [{"rawBytes": b64(one)} for one in chain]},
                    "validFor": since,
                }
            ],
            "ctlogs": [log(self.ct_key)],
            "timestampAuthorities": [
                {
                    "subject": {"organization": "example", "commonName": "tsa"},
                    "uri": self.url,
                    "certChain": {"certificates": [{"rawBytes": b64(one)} for one in self.stampers]},
                    "validFor": since,
                }
            ]
            if self.stampers
            else [],
        }

    def config_json(self) -> dict[str, Any]:
        service = {
            "url": self.url,
            "majorApiVersion": 1,
            "validFor": {"start": "2020-01-01T00:00:00Z"},
            "operator": "example.com",
        }
        return {
            "mediaType": "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json",
            "trustedRoot": self.root_json(),
            "signingConfig": {
                "mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json",
                "caUrls": [service],
                "oidcUrls": [],
                "rekorTlogUrls": [{**service, "majorApiVersion": 2 if self.stamper else 1}],
                "rekorTlogConfig": {"selector": "ANY"},
                "tsaUrls": [{**service, "url": f"{self.url}/timestamp"}] if self.stamper else [],
                "tsaConfig": {"selector": "ANY"},
            },
        }

    # --- the issuer of tokens ---

    def token(self, **claims: Any) -> str:
        now = int(datetime.now(UTC).timestamp())
        said = {"iss": LOGIN, "sub": WORKFLOW, "aud": "sigstore", "iat": now, "nbf": now - 5, "exp": now + 300}
        return jwt.encode({**said, **claims}, self.issuer_key, algorithm="ES256")

    # --- the certificate authority ---

    def _authority(
        self,
        name: str,
        key: ec.EllipticCurvePrivateKey,
        above: tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None,
    ) -> x509.Certificate:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"sigstore {name}")])
        issuer, signer = (subject, key) if above is None else (above[0].subject, above[1])
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self.now - timedelta(days=2000))
            .not_valid_after(self.now + timedelta(days=2000))
            .add_extension(x509.BasicConstraints(ca=True, path_length=1 if above is None else 0), critical=True)
            .add_extension(_usage(key_cert_sign=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        if above is not None:
            builder = builder.add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False
            ).add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(above[1].public_key()), critical=False)
        return builder.sign(signer, hashes.SHA256())

    def certificate(self, public: ec.EllipticCurvePublicKey, name: str) -> x509.Certificate:
        """Issue a certificate as Fulcio does, with the promise of the certificate log in it."""
        asked = self.asked
        start = self.now + asked.valid_from
        names = asked.names if asked.names is not None else (name,)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(self.ca.subject)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(start + asked.valid_for)
            .add_extension(_usage(digital_signature=True), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage(
                    [ExtendedKeyUsageOID.CODE_SIGNING if asked.code_signing else ExtendedKeyUsageOID.CLIENT_AUTH]
                ),
                critical=False,
            )
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.ca_key.public_key()), critical=False)
            .add_extension(
                x509.SubjectAlternativeName(
                    [x509.UniformResourceIdentifier(one) if "://" in one else x509.RFC822Name(one) for one in names]
                ),
                critical=True,
            )
        )
        old, new = asked.issuers
        if old is not None:
            builder = builder.add_extension(x509.UnrecognizedExtension(ISSUER_OLD, old.encode()), critical=False)
        if new is not None:
            value = der(0x0C, new.encode())
            builder = builder.add_extension(x509.UnrecognizedExtension(ISSUER, value), critical=False)
        before = builder.sign(self.ca_key, hashes.SHA256())
        if not asked.with_sct:
            return before
        promise = der(0x04, self._promise(before.tbs_certificate_bytes))
        return builder.add_extension(x509.UnrecognizedExtension(SCT_LIST, promise), critical=False).sign(
            self.ca_key, hashes.SHA256()
        )

    def _promise(self, tbs: bytes) -> bytes:
        """The list of one signed certificate timestamp over a certificate without it (RFC 6962, 3.2 and 3.3)."""
        at = int(self.now.timestamp() * 1000)
        size = len(tbs).to_bytes(3, "big")
        entry = b"\0\1" + hashlib.sha256(spki(self.ca_key)).digest() + size + tbs
        signature = sign(self.ct_key, b"\0\0" + struct.pack(">Q", at) + entry + b"\0\0")
        body = b"\0" + hashlib.sha256(spki(self.ct_key)).digest() + struct.pack(">Q", at) + b"\0\0"
        body += b"\4\3" + struct.pack(">H", len(signature)) + signature
        one = struct.pack(">H", len(body)) + body
        return struct.pack(">H", len(one)) + one

    def _claims(self, token: str) -> dict[str, Any]:
        key = self.issuer_key.public_key()
        claims: dict[str, Any] = jwt.decode(token, key, ["ES256"], audience="sigstore", issuer=LOGIN)
        return claims

    def fulcio(self, headers: Any, body: bytes) -> dict[str, Any]:
        request = json.loads(body)
        if "publicKeyRequest" in request:  # the older way, which other clients go
            token = request["credentials"]["oidcIdentityToken"]
            claims = self._claims(token)
            held = request["publicKeyRequest"]
            public = serialization.load_pem_public_key(held["publicKey"]["content"].encode())
            assert isinstance(public, ec.EllipticCurvePublicKey)
            proof = base64.b64decode(held["proofOfPossession"], validate=True)
            public.verify(proof, claims["sub"].encode(), ec.ECDSA(hashes.SHA256()))
        else:
            self.expect(set(request) == {"certificateSigningRequest"}, "a signing request and nothing else")
            asked = x509.load_pem_x509_csr(base64.b64decode(request["certificateSigningRequest"], validate=True))
            self.expect(asked.is_signature_valid, "the request proves that its key is held")
            scheme, _, token = headers["Authorization"].partition(" ")
            self.expect(scheme == "Bearer", "the token stands in the header")
            claims = self._claims(token)
            public = asked.public_key()
            assert isinstance(public, ec.EllipticCurvePublicKey)
        chain = [self.certificate(public, claims["sub"]), self.ca, self.root]
        pem = [one.public_bytes(serialization.Encoding.PEM).decode() for one in chain]
        return {"signedCertificateEmbeddedSct": {"chain": {"certificates": pem}}}

    # --- the transparency log ---

    def rekor(self, body: bytes) -> dict[str, Any]:
        request = json.loads(body)
        self.expect((request["apiVersion"], request["kind"]) == ("0.0.1", "dsse"), "an entry of kind dsse 0.0.1")
        proposed = request["spec"]["proposedContent"]
        [verifier] = proposed["verifiers"]
        certificate = x509.load_pem_x509_certificate(base64.b64decode(verifier))
        envelope = json.loads(proposed["envelope"])
        [signature] = envelope["signatures"]
        payload = base64.b64decode(envelope["payload"])
        public = certificate.public_key()
        assert isinstance(public, ec.EllipticCurvePublicKey)
        message = pae(envelope["payloadType"], payload)
        public.verify(base64.b64decode(signature["sig"]), message, ec.ECDSA(hashes.SHA256()))
        logged = self.entry_body(proposed["envelope"].encode(), payload, signature["sig"], verifier)
        return {hashlib.sha256(logged).hexdigest(): self.entry(logged)}

    def rekor2(self, body: bytes) -> dict[str, Any]:
        request = json.loads(body)
        self.expect(set(request) == {"hashedRekordRequestV002"}, "an entry of kind hashedrekord 0.0.2")
        asked = request["hashedRekordRequestV002"]
        verifier = asked["signature"]["verifier"]
        self.expect(verifier["keyDetails"] == "PKIX_ECDSA_P256_SHA_256", "the key's kind is told")
        certificate = x509.load_der_x509_certificate(base64.b64decode(verifier["x509Certificate"]["rawBytes"]))
        public = certificate.public_key()
        assert isinstance(public, ec.EllipticCurvePublicKey)
        digest, sig = base64.b64decode(asked["digest"]), base64.b64decode(asked["signature"]["content"])
        public.verify(sig, digest, ec.ECDSA(Prehashed(hashes.SHA256())))
        data = {"algorithm": "SHA2_256", "digest": asked["digest"]}
        spec = {"hashedRekordV002": {"data": data, "signature": asked["signature"]}}
        entry = self.entry(canonical({"apiVersion": "0.0.2", "kind": "hashedrekord", "spec": spec}))
        logged = logged_entry(entry, "hashedrekord", "0.0.2")
        del logged["integratedTime"], logged["inclusionPromise"]
        return logged

    def entry_body(self, envelope: bytes, payload: bytes, sig: str, verifier: str) -> bytes:
        """The canonical body of an entry of kind dsse 0.0.1."""
        spec = {
            "envelopeHash": {"algorithm": "sha256", "value": hashlib.sha256(envelope).hexdigest()},
            "payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()},
            "signatures": [{"signature": sig, "verifier": verifier}],
        }
        return canonical({"apiVersion": "0.0.1", "kind": "dsse", "spec": spec})

    def entry(self, body: bytes) -> dict[str, Any]:
        """Log an entry and tell where, when and by which proof, as version 1 of the API does."""
        self.leaves.append(body)
        self.leaves.append(b"the next one's")
        index, shard = len(self.leaves) - 2, 1000
        nodes = [leaf_hash(one) for one in self.leaves]
        root = root_of(nodes)
        log_id = hashlib.sha256(spki(self.log_key)).digest()
        at = int(self.now.timestamp())
        note = f"{HOST} - 1\n{len(nodes)}\n{b64(root)}\n"
        name_line = f"— {HOST} {b64(log_id[:4] + sign(self.log_key, note.encode()))}\n"
        logged = {"body": b64(body), "integratedTime": at, "logID": log_id.hex(), "logIndex": shard + index}
        return {
            **logged,
            "verification": {
                "inclusionProof": {
                    "checkpoint": f"{note}\n{name_line}",
                    "hashes": [one.hex() for one in path_to(index, nodes)],
                    "logIndex": index,
                    "rootHash": root.hex(),
                    "treeSize": len(nodes),
                },
                "signedEntryTimestamp": b64(sign(self.log_key, canonical(logged))),
            },
        }

    # --- a bundle made without any client ---

    def bundle(
        self,
        payload: bytes,
        name: str = WORKFLOW,
        payload_type: str = "application/vnd.in-toto+json",
        **asked: Any,
    ) -> dict[str, Any]:
        """Return a bundle over a payload; what ``asked`` names is otherwise than an honest instance has it."""
        self.asked = Asked(**asked)
        key = new_key()
        certificate = self.certificate(key.public_key(), name)
        self.asked = Asked()
        pem = b64(certificate.public_bytes(serialization.Encoding.PEM))
        sig = b64(sign(key, pae(payload_type, payload)))
        envelope = {"payload": b64(payload), "payloadType": payload_type, "signatures": [{"sig": sig}]}
        entry = self.entry(self.entry_body(json.dumps(envelope).encode(), payload, sig, pem))
        return {
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {
                "certificate": {"rawBytes": b64(certificate.public_bytes(serialization.Encoding.DER))},
                "tlogEntries": [logged_entry(entry, "dsse", "0.0.1")],
            },
            "dsseEnvelope": envelope,
        }

    # --- the servers ---

    def expect(self, holds: bool, what: str) -> None:
        if not holds:
            raise ValueError(what)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                """Give out a token as a service for continuous integration does to the jobs that it runs."""
                outer.requests.append(self.path)
                good = self.path == "/token?audience=sigstore" and self.headers["Authorization"] == "bearer job"
                self._answer(200 if good else 403, json.dumps({"value": outer.token()} if good else {}).encode())

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append(self.path)
                status = 201
                try:
                    if self.path == "/api/v2/signingCert":
                        answer = outer.fulcio(self.headers, body)
                    elif self.path == "/api/v1/log/entries":
                        answer = outer.rekor(body)
                    elif self.path == "/api/v2/log/entries":
                        answer = outer.rekor2(body)
                    elif self.path == "/timestamp" and outer.stamper is not None:
                        self._answer(200, outer.stamper(body))
                        return
                    else:
                        raise ValueError(f"no such endpoint: {self.path}")  # noqa: TRY301 - one way out
                except Exception as fault:
                    outer.faults.append(f"{type(fault).__name__}: {fault}")
                    status, answer = 400, {"code": 400, "message": str(fault)}
                if outer.asked.status != 200:
                    status = outer.asked.status
                self._answer(status, outer.asked.body(json.dumps(answer).encode()))

            def _answer(self, status: int, data: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def logged_entry(entry: dict[str, Any], kind: str, version: str) -> dict[str, Any]:
    """An answer of version 1 of the API in the form that bundles hold."""
    proof = entry["verification"]["inclusionProof"]
    return {
        "logIndex": str(entry["logIndex"]),
        "logId": {"keyId": b64(bytes.fromhex(entry["logID"]))},
        "kindVersion": {"kind": kind, "version": version},
        "integratedTime": str(entry["integratedTime"]),
        "inclusionPromise": {"signedEntryTimestamp": entry["verification"]["signedEntryTimestamp"]},
        "inclusionProof": {
            "logIndex": str(proof["logIndex"]),
            "rootHash": b64(bytes.fromhex(proof["rootHash"])),
            "treeSize": str(proof["treeSize"]),
            "hashes": [b64(bytes.fromhex(one)) for one in proof["hashes"]],
            "checkpoint": {"envelope": proof["checkpoint"]},
        },
        "canonicalizedBody": entry["body"],
    }


def canonical(value: dict[str, Any]) -> bytes:
    """Canonical JSON; nothing in these objects needs more of RFC 8785 than this."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, key_cert_sign=key_cert_sign, crl_sign=key_cert_sign,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
