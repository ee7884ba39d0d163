"""What we write, another implementation reads, and the other way round: that of sigstore for Node."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("sigstore", reason="the extra `sigstore` is not installed")

from receipts.test_receipt import sealed
from support.sigstore_instance import LOGIN, WORKFLOW, Instance, b64
from troth.receipts.demands import Identity, demand
from troth.receipts.member import MappingMember
from troth.receipts.signing import as_signed
from troth.stores.keyless import read_trust_config, read_trusted_root, sign_by_identity, voucher

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("npm") is None or shutil.which("node") is None, reason="needs Node and npm"),
]

PACKAGES = (
    "@sigstore/bundle@4.0.0",
    "@sigstore/protobuf-specs@0.5.2",
    "@sigstore/sign@4.1.1",
    "@sigstore/verify@3.1.1",
)

VERIFY = """
const {readFileSync} = require('fs');
const {bundleFromJSON} = require('@sigstore/bundle');
const {TrustedRoot} = require('@sigstore/protobuf-specs');
const {Verifier, toSignedEntity, toTrustMaterial} = require('@sigstore/verify');
const [root, file] = process.argv.slice(2).map((name) => JSON.parse(readFileSync(name)));
const verifier = new Verifier(toTrustMaterial(TrustedRoot.fromJSON(root)));
const signer = verifier.verify(toSignedEntity(bundleFromJSON(file)));
const {subjectAlternativeName, extensions} = signer.identity;
console.log(JSON.stringify([subjectAlternativeName, extensions.issuer]));
"""

SIGN = """
const {readFileSync} = require('fs');
const {bundleToJSON} = require('@sigstore/bundle');
const {DSSEBundleBuilder, FulcioSigner, RekorWitness} = require('@sigstore/sign');
const [url, token, file] = process.argv.slice(2);
const signer = new FulcioSigner({fulcioBaseURL: url, identityProvider: {getToken: async () => token}});
const witness = new RekorWitness({rekorBaseURL: url, entryType: 'dsse'});
const builder = new DSSEBundleBuilder({signer, witnesses: [witness]});
builder.create({data: readFileSync(file), type: 'application/vnd.in-toto+json'})
  .then((bundle) => console.log(JSON.stringify(bundleToJSON(bundle))));
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages in it."""
    folder = tmp_path_factory.mktemp("node")
    words = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), *PACKAGES]
    done = subprocess.run(words, cwd=folder, capture_output=True, check=False, timeout=300)
    if done.returncode:
        pytest.skip("the packages cannot be installed here")
    (folder / "verify.js").write_text(VERIFY)
    (folder / "sign.js").write_text(SIGN)
    return folder


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    found = Instance(tmp_path_factory.mktemp("instance"))
    yield found
    found.close()


def run(node: Path, script: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    call = ["node", script, *map(str, words)]
    return subprocess.run(call, cwd=node, env=own, capture_output=True, text=True, check=False, timeout=60)


def test_node_verifies_what_we_sign(node: Path, instance: Instance, tmp_path: Path) -> None:
    receipt = sealed()["receipt.json"]
    data, _ = sign_by_identity(receipt, instance.token(), read_trust_config(instance.trust_config))
    file = tmp_path / "receipt.sigstore.json"
    file.write_bytes(data)
    done = run(node, "verify.js", instance.trusted_root, file)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [WORKFLOW, LOGIN]
    changed = json.loads(data)
    changed["dsseEnvelope"]["payload"] = b64(receipt + b" ")
    file.write_text(json.dumps(changed))
    assert run(node, "verify.js", instance.trusted_root, file).returncode == 1


def test_we_verify_what_node_signs(node: Path, instance: Instance, tmp_path: Path) -> None:
    files = sealed()
    file = tmp_path / "receipt.json"
    file.write_bytes(files["receipt.json"])
    instance.requests.clear()
    done = run(node, "sign.js", instance.url, instance.token(), file)
    assert (done.returncode, instance.faults) == (0, []), done.stderr
    assert instance.requests == ["/api/v2/signingCert", "/api/v1/log/entries"]
    asked = demand([], None, None, [Identity(WORKFLOW, LOGIN)])
    vouch = voucher(read_trusted_root(instance.trusted_root))
    member, signers = as_signed(MappingMember(files), asked, None, [done.stdout.encode()], vouch)
    assert member.read("receipt.json") == files["receipt.json"]
    assert signers.verified == asked.identities
