"""``troth receipt``: results, exits, and what a person is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from receipts.faults import put
from receipts.test_receipt import sealed, stated, value
from support.receipt_members import HONEST, LINT, TEST, Draft, dump, event
from troth.cli.main import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run one command line in this process; return exit status and both outputs."""

    def call(*words: str | Path) -> tuple[int, str, str]:
        status = main([str(word) for word in words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def laid(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def contradicted() -> Draft:
    return Draft().add_events(event(5, "write", path="tests/test_a.py", origin="e4"))


def stale() -> Draft:
    draft = Draft().claim({"id": "c1", "argv": [*TEST, "a b"], "exit": 0})
    return draft.add_events(
        event(5, "exec", argv=[*TEST, "a b"], exit=0),
        event(6, "exec", argv=["sed", "-i", "s/a/b/", "src/app.py"], exit=0),
        event(7, "write", path="src/app.py", origin="e6"),
    )


def open_run() -> Draft:
    return value("observation", put("coverage", "unknown"))(Draft())


CASES: list[tuple[str, Callable[[], dict[str, bytes]], int]] = [
    ("supported", sealed, 0),
    ("contradicted", lambda: sealed(contradicted()), 1),
    ("not established", lambda: sealed(open_run()), 3),
    ("invalid", lambda: sealed(edit=put("_type", "x")), 1),
    ("invalid, and not established", lambda: sealed(open_run(), put("predicate.verdict", HONEST["done"])), 1),
    ("refused", lambda: sealed(value("tree", put("files", []))(Draft())), 2),
    ("contract", stated, 0),
    ("contract, invalid", lambda: stated(put("predicate", {})), 1),
    ("no receipt", lambda: Draft().seal(), 0),
    ("nothing at all", dict, 2),
]


@pytest.mark.parametrize(("files", "status"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_exit_statuses(run: Run, tmp_path: Path, files: Any, status: int) -> None:
    folder = laid(tmp_path / "m", files())
    for command in ("check", "verify"):
        for more in ([], ["--json"]):
            found, out, err = run("receipt", command, folder, *more)
            assert found == status
            assert out
            assert not err
            assert out.endswith("\n")


def test_check_prints_the_result_as_it_is(run: Run, tmp_path: Path) -> None:
    folder = laid(tmp_path / "m", sealed())
    status, out, _ = run("receipt", "check", folder, "--json")
    assert (status, json.loads(out)) == (0, {"receipt": {"verdict": "valid"}, **HONEST})
    assert out.count("\n") == 1
    status, out, _ = run("receipt", "check", folder)
    assert out == f"{folder}: receipt valid; done supported (done_checks_supported)\n"


def test_check_of_several_folders(run: Run, tmp_path: Path) -> None:
    folders = [laid(tmp_path / name, files()) for name, files, _ in CASES]
    status, out, _ = run("receipt", "check", "--json", *folders)
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["member"] for line in lines] == [str(folder) for folder in folders]
    assert lines[0] == {"member": str(folders[0]), "receipt": {"verdict": "valid"}, **HONEST}
    assert status == 2
    good, bad, undecided = folders[0], folders[1], folders[2]
    assert run("receipt", "check", good, undecided)[0] == 3
    assert run("receipt", "check", undecided, good, bad)[0] == 1
    assert run("receipt", "check", good, folders[6])[0] == 0
    told = run("receipt", "check", *folders)[1].splitlines()
    assert [line.split(":")[0] for line in told[: len(folders)]] == [str(folder) for folder in folders]


def test_a_missing_folder(run: Run, tmp_path: Path) -> None:
    good = laid(tmp_path / "m", sealed())
    status, out, _ = run("receipt", "check", tmp_path / "nothing", "--json")
    assert (status, json.loads(out)["error"]["code"]) == (2, "E_MEMBER_MISSING")
    status, out, _ = run("receipt", "check", good, tmp_path / "nothing", "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert status == 2
    assert lines[1]["member"].endswith("nothing")
    assert lines[1]["error"]["code"] == "E_MEMBER_MISSING"
    status, out, err = run("receipt", "check", tmp_path / "nothing")
    assert (status, out) == (2, "")
    assert "E_MEMBER_MISSING" in err


def test_naming_checks(run: Run, tmp_path: Path) -> None:
    folder = laid(tmp_path / "m", Draft().seal())
    for name in ("tool_claim_match/v1", "tool_claim_match"):
        _, out, _ = run("receipt", "check", folder, "--json", "--checks", name)
        assert json.loads(out) == {"checks": {"tool_claim_match/v1": HONEST["checks"]["tool_claim_match/v1"]}}
    _, out, _ = run(
        "receipt", "check", folder, "--json", "--checks", "acceptance_observed", "--checks", "protected_paths"
    )
    assert list(json.loads(out)["checks"]) == ["acceptance_observed/v1", "protected_paths/v1"]
    status, out, _ = run("receipt", "check", folder, "--json", "--checks", "nothing")
    assert (status, json.loads(out)["error"]["code"]) == (2, "E_CHECK_UNKNOWN")
    # A receipt is held to all three, whatever is named.
    folder = laid(tmp_path / "r", sealed())
    assert json.loads(run("receipt", "check", folder, "--json", "--checks", "protected_paths")[1])["done"]


def test_contract_statement_folder(run: Run, tmp_path: Path) -> None:
    folder = laid(tmp_path / "m", stated())
    assert json.loads(run("receipt", "check", folder, "--json")[1]) == {"contract": {"verdict": "valid"}}
    (folder / "statement.json").unlink()
    assert json.loads(run("receipt", "check", folder, "--json")[1]) == {"refused": "member_incomplete"}


# --- verify ---


def told(run: Run, folder: Path, *more: str | Path) -> str:
    return run("receipt", "verify", folder, *more)[1]


def test_verify_says_whose_policy_it_judged_by(run: Run, tmp_path: Path) -> None:
    folder = laid(tmp_path / "m", sealed())
    text = told(run, folder)
    assert "self-pinned" in text
    assert "urn:example:verifier" in text
    report = json.loads(told(run, folder, "--json"))
    assert report["policy"]["judged_by"] == "self-pinned"
    assert report["policy"]["authorities"] == ["the tests"]
    assert report["result"] == {"receipt": {"verdict": "valid"}, **HONEST}
    assert set(report["records"]) == {"contract", "tree", "observation", "capability", "grade", "claims"}
    for held in report["records"].values():
        assert held["sha256"] in text


def test_verify_tells_a_stale_claim_as_stale(run: Run, tmp_path: Path) -> None:
    """§13.13: never as false; with the write that made it so and the command that would mend it."""
    text = told(run, laid(tmp_path / "m", sealed(stale())))
    assert "stale: python -m pytest -q 'a b' ran at 2026-03-01T10:00:05Z (step 5), then src/app.py was written" in text
    assert "step 7) by sed -i s/a/b/ src/app.py" in text
    assert "run it again to mend that: python -m pytest -q 'a b'" in text
    for word in ("false", "lied", "fabricat"):
        assert word not in text
    fact = json.loads(told(run, tmp_path / "m", "--json"))["checks"][2]["facts"][0]
    assert (fact["outcome"], fact["written_after"]["path"], fact["mend"]) == ("stale", "src/app.py", [*TEST, "a b"])


def test_verify_tells_an_unmatched_claim_as_not_observed(run: Run, tmp_path: Path) -> None:
    draft = Draft().claim(
        {"id": "c1", "argv": ["gh", "issue", "list"], "exit": 0}, {"id": "c2", "argv": LINT, "exit": 1}
    )
    text = told(run, laid(tmp_path / "m", sealed(draft)))
    assert "not observed: gh issue list, claimed exit 0" in text
    assert "contradicted: ruff check ., claimed exit 1, observed exit 0" in text


def test_verify_names_mutations_results_and_reasons(run: Run, tmp_path: Path) -> None:
    text = told(run, laid(tmp_path / "a", sealed(contradicted())))
    assert "tests/test_a.py, protected as tests: write at 2026-03-01T10:00:05Z (step 5) by ruff check ." in text
    draft = value("grade", put("results.1.exit", 2))(Draft())
    assert "lint: ruff check . ended with exit 2" in told(run, laid(tmp_path / "b", sealed(draft)))
    text = told(run, laid(tmp_path / "c", sealed(open_run())))
    assert "coverage is unknown" in text
    draft = Draft()
    draft.values["tree"]["files"].pop("setup.cfg")
    assert "file setup.cfg is not what the contract sealed" in told(run, laid(tmp_path / "d", sealed(draft)))
    text = told(run, laid(tmp_path / "e", sealed(value("tree", put("files", []))(Draft()))))
    assert "refused" in text
    assert "tree.json at $.files" in text
    assert "tree_files_type" in text


def test_verify_shows_effects(run: Run, tmp_path: Path) -> None:
    effects = [
        {"type": "connect", "time": "2026-03-01T10:00:05Z", "address": "192.0.2.1:80"},
        {"type": "rename", "time": "2026-03-01T10:00:06Z", "paths": ["/tmp/a", "/x/site-packages/b.pth"]},
    ]
    draft = value("launch_receipt", put("sensors.external_effects", effects))(Draft().launched())
    text = told(run, laid(tmp_path / "m", sealed(draft)))
    assert "192.0.2.1:80" in text
    assert "/tmp/a -> /x/site-packages/b.pth  reaches the grader" in text
    assert "effects outside the workspace: none reported" in told(run, laid(tmp_path / "n", sealed()))


def test_verify_by_ones_own_policy(run: Run, tmp_path: Path) -> None:
    folder = laid(tmp_path / "m", sealed())
    mine = {name: data for name, data in Draft().seal().items() if name.endswith((".case.json", ".policy.json"))}
    own = laid(tmp_path / "mine", mine)
    status, out, _ = run("receipt", "verify", folder, "--policy", own)
    assert status == 0
    assert "by your own cases and policies" in out
    assert "self-pinned" not in out
    stranger = dict(mine)
    stranger["acceptance.policy.json"] = stranger["acceptance.policy.json"].replace(b'"verifier"', b'"someone else"')
    status, out, _ = run("receipt", "verify", folder, "--policy", laid(tmp_path / "other", stranger), "--json")
    assert status == 1
    assert json.loads(out)["result"]["receipt"]["code"] == "receipt_check_not_recomputed"
    # The member's own are not fallen back to.
    (own / "acceptance.case.json").unlink()
    status, out, _ = run("receipt", "verify", folder, "--policy", own, "--json")
    assert (status, json.loads(out)["result"]) == (2, {"refused": "case_missing"})


PINS = """
observed_party = "agent"
[producers]
observation = "observer"
tree = "observer"
grade = "verifier"
"""


def test_verify_by_pins(run: Run, tmp_path: Path) -> None:
    folder = laid(tmp_path / "m", sealed())
    pins = tmp_path / "pins.toml"
    pins.write_text(PINS)
    status, out, _ = run("receipt", "verify", folder, "--pin", pins)
    assert status == 0
    assert "by your own pins" in out
    assert "taken from the folder: claim_id, invocation_id, scope, sha256.contract" in out
    pins.write_text(PINS.replace('"verifier"', '"someone else"'))
    status, out, _ = run("receipt", "verify", folder, "--pin", pins)
    assert status == 1
    assert 'grade: producer is "verifier", asked for is "someone else"' in out
    for text, code in (("observed_party = 1", "E_PIN_MALFORMED"), ("=", "E_PIN_UNREADABLE"),
        ("a = " + "[" * 5000, "E_PIN_UNREADABLE"), ("#" * (1 << 20) + "\n", "E_PIN_UNREADABLE"),
    ):  # fmt: skip
        pins.write_text(text)
        status, out, _ = run("receipt", "verify", folder, "--pin", pins, "--json")
        assert (status, json.loads(out)["error"]["code"]) == (2, code)
    status, out, _ = run("receipt", "verify", folder, "--pin", pins, "--policy", folder, "--json")
    assert (status, json.loads(out)["error"]["code"]) == (2, "E_USAGE")


def test_a_forged_folder_is_valid_said_to_be_self_pinned_and_fails_by_pins(run: Run, tmp_path: Path) -> None:
    """§13.8"""
    forged = Draft()
    for kind in ("observation", "capability", "tree", "grade"):
        forged.values[kind]["producer"] = "forger"

    def repin(_case: Any, policy: Any) -> None:
        for role, pin in policy["witnesses"].items():
            if "producer" in pin:
                pin["producer"] = forged.values[role.removesuffix("-pin")]["producer"]

    forged.policy_edits.append(("*", repin))
    folder = laid(tmp_path / "m", sealed(forged))
    status, out, _ = run("receipt", "verify", folder)
    assert status == 0
    assert "self-pinned" in out
    pins = tmp_path / "pins.toml"
    pins.write_text(PINS)
    status, out, _ = run("receipt", "verify", folder, "--pin", pins)
    assert status == 1
    assert "self-pinned" not in out


def test_text_from_records_cannot_drive_a_terminal(run: Run, tmp_path: Path) -> None:
    evil = "\x1b[2J\u202egit\ud800"
    draft = Draft().claim({"id": evil, "argv": [evil, "x"], "exit": 0})
    draft.values["contract"]["acceptance"][0]["id"] = evil
    draft.values["grade"]["results"][0] |= {"id": evil, "exit": 1}
    folder = laid(tmp_path / "m", sealed(draft, put("predicate.verifier.id", "urn:\x1b]0;x\u202e")))
    for command in ("verify", "show"):
        _, out, _ = run("receipt", command, folder)
        assert "\x1b" not in out
        assert "\u202e" not in out
        _, out, _ = run("receipt", command, folder, "--json")
        assert json.loads(out)
        assert "\x1b" not in out


# --- show ---


def test_show(run: Run, tmp_path: Path) -> None:
    folder = laid(tmp_path / "m", sealed(edit=put("predicate.verdict.decision", "laundered")))
    status, out, _ = run("receipt", "show", folder)
    assert status == 0
    assert "laundered" in out
    assert "troth receipt verify" in out
    assert "claim-1" in out
    status, out, _ = run("receipt", "show", folder, "--json")
    assert json.loads(out)["predicate"]["verdict"]["decision"] == "laundered"
    for odd in (put("predicate.checks", 1), put("predicate.records", []), put("predicate.external_effects", {"a": 1})):
        assert run("receipt", "show", laid(tmp_path / "m", sealed(edit=odd)))[0] == 0


def test_show_without_or_with_a_malformed_receipt(run: Run, tmp_path: Path) -> None:
    folder = laid(tmp_path / "m", Draft().seal())
    status, out, _ = run("receipt", "show", folder, "--json")
    assert (status, json.loads(out)["error"]["code"]) == (2, "E_RECEIPT_MISSING")
    for data, code in ((b"{", "receipt_json_invalid"), (dump({}), "receipt_fields")):
        (folder / "receipt.json").write_bytes(data)
        status, out, _ = run("receipt", "show", folder, "--json")
        assert (status, json.loads(out)["error"]["code"]) == (2, code)
    bad = sealed(edit=put("predicate.claim_id", ""))["receipt.json"]
    (folder / "receipt.json").write_bytes(bad)
    status, out, _ = run("receipt", "show", folder, "--json")
    assert json.loads(out)["error"]["code"] == "receipt_predicate_malformed"


def test_help_names_every_command(run: Run) -> None:
    status, out, _ = run("receipt", "--help")
    assert status == 0
    for command in ("check", "verify", "show"):
        assert command in out
        assert "Example" in run("receipt", command, "--help")[1]
