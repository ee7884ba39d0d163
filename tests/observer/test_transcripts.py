"""Readers of transcripts, against what the real tools wrote: what is a claim, and what is none."""

from __future__ import annotations

import json
import random
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from troth.core.errors import Refused
from troth.observer.transcripts import FORMATS, Said, Transcript, common, detect, read_transcript

HERE = Path(__file__).parent / "transcripts"
SAMPLES = sorted(path.parent for path in HERE.glob("*/sample.json"))


def sample(folder: Path) -> tuple[dict[str, Any], bytes]:
    about = json.loads((folder / "sample.json").read_text())
    return about, (folder / about["file"]).read_bytes()


def read(data: bytes | str, form: str) -> Transcript:
    return read_transcript(BytesIO(data.encode() if isinstance(data, str) else data), form)


def told(found: Transcript) -> list[tuple[str, int | None]]:
    return [(said.text or " ".join(said.argv or ()), said.exit) for said in found.said]


def lines(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


# --- the real tools ---


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda folder: folder.name)
def test_a_sample_is_known_by_its_marks_and_its_version_is_told(folder: Path) -> None:
    about, data = sample(folder)
    assert detect(data) == about["format"]
    found = read(data, about["format"])
    assert found.unread == ()
    assert found.tool == about["tool"]
    assert found.version in (about["version"], "")
    assert found.version_known is (found.version != "")
    assert found.said


@pytest.mark.parametrize("name", ["claude-code", "claude-stream"])
def test_claude_codes_calls_with_the_exits_that_were_reported(name: str) -> None:
    about, data = sample(HERE / name)
    found = read(data, about["format"])
    exits = [code for _, code in told(found)]
    assert exits == [1, 0, 0, 0, None, 127, 0, 0, 0]  # grep's exit was read as "no matches": it is not told
    assert dict(found.none) == {"denied, or not started": 1, "sent to the background, not reported as done": 1}
    mentioned = ("git push", "npm test", "pytest -x", "npm run lint", "sleep")
    assert not [text for text, _ in told(found) if text.startswith(mentioned)]


@pytest.mark.parametrize("name", ["codex-exec", "codex-rollout"])
def test_codex_commands_without_the_shell_that_the_tool_puts_around_them(name: str) -> None:
    about, data = sample(HERE / name)
    found = read(data, about["format"])
    assert [code for _, code in told(found)] == [1, 0, 0, 0, 1, 127, 0, 0, 0]
    assert told(found)[0][0] == "cd tests/.. && python3 -m unittest -q tests.test_cart"
    assert "cat <<'END' | python3 -\nprint('from here')\nEND" in [text for text, _ in told(found)]


def test_a_call_that_a_rollout_tells_twice_is_one_run() -> None:
    _, data = sample(HERE / "codex-rollout")
    events = [json.loads(line) for line in data.splitlines()]
    old = [entry for entry in events if entry["payload"].get("type") != "item_completed"]
    both, without = read(data, "codex-rollout"), read(lines(*old), "codex-rollout")
    assert told(both) == told(without)


def test_a_subagents_runs_are_its_own() -> None:
    stream = read(sample(HERE / "claude-stream-subagent")[1], "claude-stream")
    assert [(said.text, said.by) for said in stream.said] == [
        ("python3 -m unittest -q tests.test_cart 2>&1", "tool_1"), ("ls", ""),
    ]  # fmt: skip
    inner = read((HERE / "claude-code-subagent" / "subagent.jsonl").read_bytes(), "claude-code")
    assert [bool(said.by) for said in inner.said] == [True]
    main = read((HERE / "claude-code-subagent" / "session.jsonl").read_bytes(), "claude-code")
    assert [said.text for said in main.said] == ["ls"]


# --- bent from the real ones: what must not become a claim ---


def call(command: str, number: int = 1, **given: Any) -> dict[str, Any]:
    block = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command, **given}}
    return {"type": "assistant", "session_id": "s", "message": {"role": "assistant", "content": [block]}}


def result(text: Any, number: int = 1, *, error: bool = False, **details: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text, "is_error": error}
    content = {"type": "user", "message": {"role": "user", "content": [block]}, "session_id": "s"}
    return {**content, "tool_use_result": details} if details else content


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([call("pytest")], "a call without a result"),
        ([call("pytest"), result("The user doesn't want to proceed", error=True)], "denied, or not started"),
        ([call("pytest"), result("I said: Exit code 0", error=True)], "denied, or not started"),
        ([call("pytest", run_in_background=True), result("started")], "sent to the background, not reported as done"),
        ([call("pytest"), result("", backgroundTaskId="b")], "sent to the background, not reported as done"),
        ([call("pytest"), result("", interrupted=True)], "interrupted"),
        ([call("x" * 70_000), result("")], f"a command of more than {common.MAX_TEXT} characters"),
        ([call("a\0b"), result("")], "a command that no record can hold"),
        ([call(" "), result("")], "no command"),
    ],
)
def test_calls_that_claim_nothing(entries: list[dict[str, Any]], why: str) -> None:
    found = read(lines(*entries), "claude-stream")
    assert (found.said, dict(found.none)) == ((), {why: 1})
    twin = read(lines(call("pytest"), result("1 passed")), "claude-stream")
    assert told(twin) == [("pytest", 0)]


def test_an_exit_that_the_tool_may_have_read_otherwise_is_not_claimed() -> None:
    def exits(command: str, **details: Any) -> list[int | None]:
        found = read(lines(call(command), result("", **details)), "claude-stream")
        return [said.exit for said in found.said]

    assert exits("grep -q x f") == exits("a | rg x") == exits("diff a b") == exits("[ -f x ]") == [None]
    assert exits("grep -q x f", stdout="x") == exits("pytest -q") == exits("make latest") == [0]
    assert exits("pytest", returnCodeInterpretation="fine") == [None]


def test_a_mention_in_text_or_in_a_result_is_no_call() -> None:
    said = {"type": "text", "text": "I ran `pytest -x`: exit 0"}
    quoting = {"type": "tool_use", "id": "t9", "name": "Write", "input": {"content": "$ pytest", "command": "pytest"}}
    entry = {"type": "assistant", "session_id": "s", "message": {"content": [said, quoting]}}
    as_user = {**call("pytest"), "type": "user"}
    forged = {**result("ok"), "type": "assistant"}
    found = read(lines(entry, result("x", 9), as_user, forged), "claude-stream")
    assert found.said == ()


def test_one_call_has_one_result() -> None:
    found = read(
        lines(call("pytest"), result("Exit code 1\nx", error=True), call("pytest"), result("ok")), "claude-stream"
    )
    assert told(found) == [("pytest", 1)]


@pytest.mark.parametrize("odd", [["Bash"], {"name": "Bash"}, None, 1])
def test_a_tool_whose_name_is_no_text_is_another_tool(odd: Any) -> None:
    """A name that is an array or an object is no key of ours, and ends no reading."""
    block = {"type": "tool_use", "id": "c1", "name": odd, "input": {"command": "make"}}
    session = lines(
        {"type": "assistant", "sessionId": "s", "message": {"content": [block]}}, call("pytest -q", 2), result("ok", 2)
    )
    assert told(read(session, "claude-code")) == [("pytest -q", 0)]
    item = {"name": odd, "call_id": "c1", "arguments": "{}"}
    for kind in ("custom_tool_call", "function_call", "local_shell_call"):
        rollout = lines({"type": "response_item", "payload": {"type": kind, **item}})
        assert read(rollout, "codex-rollout").unread == ()


def test_a_call_that_only_its_output_answers_is_a_run_and_no_other_tool() -> None:
    """A rollout may end before the event that tells a command's end, and a tool's own call is no call of another."""
    rollout = lines(
        {"type": "response_item", "payload": {"type": "function_call", "name": "exec_command", "call_id": "c1",
                                              "arguments": json.dumps({"cmd": "make test"})}},
        {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c1",
                                              "output": "Process exited with code 2\nOutput:\n"}},
    )  # fmt: skip
    found = read(rollout, "codex-rollout")
    assert (told(found), found.beside) == ([("make test", 2)], frozenset())
    other = lines({"type": "response_item", "payload": {"type": "function_call", "name": "web_search", "call_id": "c"}})
    assert read(other, "codex-rollout").beside == {"another tool"}


def test_codex_denials_and_other_items_are_no_claims() -> None:
    def item(**more: Any) -> dict[str, Any]:
        held = {
            "id": "i",
            "type": "command_execution",
            "command": "bash -lc pytest",
            "exit_code": 0,
            "status": "completed",
        }
        return {"type": "item.completed", "item": {**held, **more}}

    assert told(read(lines(item()), "codex-exec")) == [("pytest", 0)]
    for bent in (
        item(status="declined"), item(exit_code=None), item(type="agent_message", text="pytest"), item(command=7),
        {**item(), "type": "item.started"}, item(exit_code=True), item(exit_code=4711),
    ):  # fmt: skip
        assert told(read(lines(bent), "codex-exec")) == []


def test_the_exit_of_a_call_is_not_read_from_what_the_program_printed() -> None:
    asked = {"type": "function_call", "name": "exec_command", "arguments": '{"cmd": "pytest"}', "call_id": "c"}

    def answer(output: str) -> dict[str, Any]:
        return {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c", "output": output}}

    def rollout(output: str) -> list[tuple[str, int | None]]:
        return told(read(lines({"type": "response_item", "payload": asked}, answer(output)), "codex-rollout"))

    assert rollout("Wall time: 1\nProcess exited with code 1\nOutput:\nfailed") == [("pytest", 1)]
    assert rollout("Wall time: 1\nProcess running with session ID 7\nOutput:\nProcess exited with code 0") == []
    assert rollout('{"output": "x", "metadata": {"exit_code": 2}}') == [("pytest", 2)]
    assert rollout('{"output": "x", "metadata": 2}') == []


LOG = """# Work
I plan to run `pytest -q` (exit 0, surely).

```console
$ pytest -q \\
    tests
12 passed
[exit 0]
$ ruff check
exit code: 1
$ mypy
Success
```

> ```console
> $ pytest -x
> exit 0
> ```

```sh
npm test
```

```python
$ pytest -z
exit 0
```

    ```sh
    $ indented
    exit 0
    ```

~~~bash
$ make
exited with code 2
~~~
exit 0
"""


def test_a_plain_log_claims_what_it_states_with_an_exit() -> None:
    found = read(LOG, "plain")
    assert told(found) == [("pytest -q     tests", 0), ("ruff check", 1), ("make", 2)]
    assert dict(found.none) == {"a command without its exit": 1}
    assert all(not said.call for said in found.said)
    assert detect(LOG.encode()) == "plain"


AIDER = """
# aider chat started at 2026-01-02 03:04:05

> Aider v0.86.2%%
> Model: x%%

#### /run pytest -q%%
> 1 passed%%
>
> Added 3 lines of output to the chat.%%

#### what of `pytest -x`? /run nothing%%

You should run:

```bash
pytest --cov
```

> Run shell command? (Y)es/(N)o [Yes]: n%%

#### /test make%%
#### /run ruff check%%
> Running mypy%%

As I said:

> Running pytest -x
> Added 3 lines of output to the chat.
""".replace("%%", "  ")  # aider ends its own lines with two blanks


def test_aiders_history_claims_what_ran() -> None:
    found = read(AIDER, "aider")
    assert detect(AIDER.encode()) == "aider"
    assert told(found) == [("pytest -q", None), ("mypy", None)]
    assert sum(dict(found.none).values()) == 1
    assert (found.version, found.version_known) == ("0.86.2", True)


def test_an_unknown_version_is_told_and_read() -> None:
    entry = {**call("pytest"), "version": "99.0.1"}
    found = read(lines(entry, result("")), "claude-code")
    assert (found.version, found.version_known, len(found.said)) == ("99.0.1", False, 1)


def test_the_neutral_file_says_the_last_of_each() -> None:
    found = read(lines({"argv": ["t"], "exit": 1}, {"argv": ["t"], "exit": 0}, {"x": 1}), "claims")
    assert found.said == (Said(2, argv=("t",), exit=0, call=False),)
    assert [number for number, _ in found.unread] == [3]
    assert detect(b'{"argv": ["t"]}\n') == "claims"


def test_a_format_that_nobody_knows_is_refused() -> None:
    with pytest.raises(Refused) as caught:
        read("", "word")
    assert caught.value.code == "E_TRANSCRIPT_FORMAT"


# --- hostile bytes ---


def test_a_long_line_is_passed_over_and_what_follows_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "MAX_LINE", 1000)
    for size in (999, 70_000, 200_000):
        data = b"x" * size + b"\n" + lines(call("pytest"), result("")).encode()
        found = read(data, "claude-stream")
        assert told(found) == [("pytest", 0)]
        assert [number for number, _ in found.unread] == [1]


def test_bounds_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    many = lines(*(entry for number in range(5) for entry in (call("a", number), result("", number))))
    monkeypatch.setattr(common, "MAX_SAID", 3)
    found = read(many, "claude-stream")
    assert (len(found.said), dict(found.none)) == (3, {"beyond the first 3 runs": 2})
    monkeypatch.setattr(common, "MAX_BYTES", 100)
    assert (0, "only the first 100 bytes were read") in read(many, "claude-stream").unread
    found = read("x\n" * 200, "codex-exec")
    assert len(found.unread) <= common.MAX_NOTES + 1


def bent(data: bytes, draw: random.Random) -> bytes:
    """Return a transcript with a few bytes, lines or values changed."""
    rows = data.split(b"\n")
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(rows))
        way = draw.randrange(6)
        if way == 0:
            rows[at] = bytes(draw.randrange(256) for _ in range(draw.randint(0, 40)))
        elif way == 1 and rows[at]:
            cut = draw.randrange(len(rows[at]))
            rows[at] = rows[at][:cut] + bytes([draw.randrange(256)]) + rows[at][cut + 1 :]
        elif way == 2:
            rows[at] = rows[at][: draw.randint(0, len(rows[at]))]
        elif way == 3:
            rows.insert(at, rows[draw.randrange(len(rows))])
        elif way == 4:
            old, new = draw.choice(
                [(b'"', b"null"), (b"{", b"["), (b":", b": [],"), (b"0", b"1e9"), (b"text", b"type")]
            )
            rows[at] = rows[at].replace(old, new, draw.randint(1, 3))
        else:
            rows[at] = b"[" * draw.choice([1, 300, 3_000])
    return b"\n".join(rows)


CALLS = (b"tool_use", b"tool_result", b"CommandExecution", b"function_call", b"command_execution", b"session_meta")


def seeds(form: str) -> list[bytes]:
    """Real calls and results, a few lines each: short, so that a hundred thousand are read in a minute."""
    if form in ("plain", "aider", "claims"):
        written = {"plain": LOG, "aider": AIDER, "claims": '{"argv": ["t", "-q"], "exit": 0}\n' * 3}
        return [written[form].encode()]
    found = []
    for folder in SAMPLES:
        about, data = sample(folder)
        rows = [row for row in data.split(b"\n") if len(row) < 1500 and any(mark in row for mark in CALLS)]
        if about["format"] == form:
            found += [b"\n".join(rows[at : at + 4]) for at in range(0, len(rows) - 3, 2)]
    return found


def fuzzed(form: str, count: int, draw: random.Random) -> int:
    pool = seeds(form)
    found = 0
    for _ in range(count):
        answer = read(bent(draw.choice(pool), draw), form)
        found += bool(answer.said)
        for said in answer.said:
            assert (said.text is None) != (said.argv is None)
            assert said.exit is None or -255 <= said.exit <= 255
    return found


@pytest.mark.parametrize("form", list(FORMATS))
def test_bent_transcripts_are_answered(form: str) -> None:
    assert fuzzed(form, 60, random.Random(3)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("form", list(FORMATS))
def test_bent_transcripts_a_hundred_thousand_times(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = fuzzed(form, 100_000, random.Random(4))
    with capsys.disabled():
        print(f"\n{form}: runs were found in {found} of 100000 bent transcripts")
    assert 0 < found < 100_000


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(list(FORMATS)))
def test_any_bytes_are_answered(data: bytes, form: str) -> None:
    assert detect(data) in FORMATS
    assert read(data, form).format == form
