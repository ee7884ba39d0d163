"""``troth hook git`` that asks for signatures: a real push, for which a signed receipt speaks or does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("sigstore", reason="the extra `sigstore` is not installed")

from cli.test_receipt import laid
from hooks.test_hook import git
from receipts.test_receipt import sealed
from support.frontdoor import troth
from support.receipt_members import Draft, sha
from support.sigstore_instance import LOGIN, WORKFLOW, Instance

TEXTS = ("app", "cfg", "x", "test a", "test b")
"""What stands in the files of an honest member's tree."""


@pytest.fixture
def instance(tmp_path: Path) -> Instance:
    found = Instance(tmp_path / "instance")
    found.close()  # its keys and its root are all that is needed here
    return found


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository whose one commit holds the very files of a valid receipt's tree, and a place to push to."""
    root = tmp_path / "shop"
    laid(root / ".mentu" / "runs" / "run_a", sealed())
    texts = {sha(text): text for text in TEXTS}
    for name, digest in Draft().values["tree"]["files"].items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(texts[digest])
    assert git(tmp_path, "init", "--bare", "-q", "remote.git").returncode == 0
    assert git(root, "init", "-q", "-b", "main").returncode == 0
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "exclude").write_text(".mentu/\n")
    assert git(root, "add", ".").returncode == 0
    assert git(root, "commit", "-qm", "start").returncode == 0
    git(root, "remote", "add", "origin", str(tmp_path / "remote.git"))
    return root


@pytest.mark.slow
def test_a_push_needs_a_receipt_that_the_identity_signed(shop: Path, instance: Instance, tmp_path: Path) -> None:
    home = {name: str(tmp_path / name) for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME")}
    listed = tmp_path / "signers.toml"
    listed.write_text(f'[[approver]]\nidentity = "{WORKFLOW}"\nissuer = "{LOGIN}"\n')
    root = tmp_path / "root.json"
    # The words are seen to when the hook is installed, and name their files from any folder.
    words = ("hook", "git", "install", "--root", "shop", "--signers", "signers.toml", "--trusted-root", "root.json")
    answer = troth(*words, "--json", cwd=tmp_path, env=home)
    assert (answer.exit, answer.json["error"]["code"]) == (2, "E_SIGSTORE_ROOT")
    root.write_bytes(instance.trusted_root.read_bytes())
    answer = troth(*words, "--threshold", "2", "--json", cwd=tmp_path, env=home)
    assert (answer.exit, answer.json["error"]["code"]) == (2, "E_USAGE")
    assert not (shop / ".git" / "hooks" / "pre-push").exists()
    assert troth(*words, "--threshold", "1", cwd=tmp_path, env=home).exit == 0

    receipt = (shop / ".mentu/runs/run_a/receipt.json").read_bytes()
    bundle = shop / ".mentu/runs/run_a/receipt.sigstore.json"
    refused = git(shop, "push", "-q", "origin", "main", env=home)
    assert (refused.returncode != 0, "E_BUNDLE_MISSING" in refused.stderr) == (True, True), refused.stderr
    bundle.write_text(json.dumps(instance.bundle(receipt, "mallory@example.com")))
    refused = git(shop, "push", "-q", "origin", "main", env=home)
    assert (refused.returncode != 0, "E_ENVELOPE_UNVERIFIED" in refused.stderr) == (True, True), refused.stderr
    bundle.write_text(json.dumps(instance.bundle(receipt)))
    done = git(shop, "push", "-q", "origin", "main", env=home)
    assert (done.returncode, "goes by the receipt of run_a" in done.stderr) == (0, True), done.stderr
