"""Settings as text: what is put in comes out again, and nothing else moves by a byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from troth.hooks.jsontext import parse_spans
from troth.hooks.settings import EVENTS, MARK, claude_text, codex_text, git_script

COMMAND = "/usr/bin/troth" + MARK + "--root '/home/a b' --contract \"x\""
OTHER = {"hooks": [{"type": "command", "command": "echo hi"}], "matcher": "Bash"}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)
groups = st.lists(st.just(OTHER) | st.fixed_dictionaries({"matcher": st.text(max_size=5)}), max_size=3)
hook_tables = st.dictionaries(st.sampled_from([*EVENTS, "PreToolUse", "Notification"]), groups, max_size=4)


@st.composite
def settings_files(draw: st.DrawFn) -> str:
    value = draw(st.dictionaries(st.text(max_size=6).filter(lambda name: name != "hooks"), json_values, max_size=3))
    if draw(st.booleans()):
        value["hooks"] = draw(hook_tables)
        if draw(st.booleans()):  # not always the last member
            value["zz"] = draw(json_values)
    text = json.dumps(
        value,
        indent=draw(st.sampled_from([None, 0, 1, 2, 4, "\t"])),
        ensure_ascii=draw(st.booleans()),
        separators=draw(st.sampled_from([None, (",", ":"), (" , ", " : ")])),
    )
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    for bare in ("{}", "[]"):
        if draw(st.booleans()):
            text = text.replace(bare, bare[0] + draw(st.sampled_from([" ", "\n", "\n  \n", "\t"])) + bare[1])
    return draw(st.sampled_from(["", " ", "\n"])) + text + draw(st.sampled_from(["", "\n", "\n\n", " \t"]))


def ours(value: Any) -> list[str]:
    return [
        name
        for name, entries in value.get("hooks", {}).items()
        for entry in entries
        for hook in entry.get("hooks", [])
        if hook.get("command") == COMMAND
    ]


def stripped(value: Any) -> Any:
    """What a reader finds besides ours, empty containers aside."""
    hooks = {
        name: [entry for entry in entries if entry.get("hooks", [{}])[0].get("command") != COMMAND]
        for name, entries in value.get("hooks", {}).items()
    }
    return {
        **{name: item for name, item in value.items() if name != "hooks"},
        "hooks": {k: v for k, v in hooks.items() if v},
    }


@given(settings_files())
@settings(max_examples=150, deadline=None)
def test_uninstalling_gives_back_the_bytes_of_before(text: str) -> None:
    installed = claude_text(text, COMMAND)
    assert installed is not None
    value = json.loads(installed)
    assert sorted(ours(value)) == sorted(EVENTS)
    assert stripped(value) == stripped(json.loads(text))
    assert claude_text(installed, COMMAND) == installed
    assert claude_text(installed, None) == text
    assert claude_text(text, None) == text


@given(json_values, st.sampled_from([None, 2, "\t"]))
def test_spans_are_where_the_values_are(value: Any, indent: Any) -> None:
    text = json.dumps(value, indent=indent)

    def read(node: Any) -> Any:
        assert json.loads(text[node.start : node.end]) is not ...
        if node.kind == "object":
            return {key: read(inner) for key, _, inner in node.items}
        return [read(inner) for _, _, inner in node.items] if node.kind == "array" else node.value

    assert read(parse_spans(text)) == value


def test_a_file_that_was_made_goes_again() -> None:
    made = claude_text(None, COMMAND)
    assert made is not None
    assert sorted(ours(json.loads(made))) == sorted(EVENTS)
    assert claude_text(made, None) is None
    assert claude_text(None, None) is None
    # What a person added since stays.
    added = made.replace('{\n  "hooks"', '{\n  "model": "x",\n  "hooks"', 1)
    assert json.loads(claude_text(added, None) or "") == {"model": "x"}
    more = made.replace('    "Stop": [\n', f'    "Stop": [\n      {json.dumps(OTHER)},\n', 1)
    assert json.loads(claude_text(more, None) or "") == {"hooks": {"Stop": [OTHER]}}


def test_another_command_takes_the_place_of_ours() -> None:
    text = '{"hooks": {"Stop": [' + json.dumps(OTHER) + "]}}"
    first = claude_text(text, COMMAND)
    second = claude_text(first, COMMAND + " --table y")
    assert second is not None
    assert ours(json.loads(second)) == []
    assert claude_text(second, None) == text


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"a": 1, "a": 2}', "// c\n{}", '{"hooks": []}', '{"hooks": {"Stop": {}}}', "\ufeff{}", "{} {}"],
)
def test_what_is_no_settings_file_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        claude_text(text, COMMAND)


WORDS = ["/usr/bin/troth", "hook", "codex", "run", "--root", "/a b"]


@pytest.mark.parametrize("text", ["", "model = 'x'\n", "# hi\r\n[tui]\nx = 1\n", "[a]\n[b]", "x = 'no line end'"])
def test_codex_configuration_comes_back(text: str) -> None:
    import tomllib

    installed = codex_text(text, WORDS)
    assert installed is not None
    assert tomllib.loads(installed) == {**tomllib.loads(text), "notify": WORDS}
    assert codex_text(installed, WORDS) == installed
    assert codex_text(installed, None) == (text or None)
    assert codex_text(text, None) == text


def test_codex_takes_one_program_only() -> None:
    with pytest.raises(LookupError):
        codex_text('notify = ["other"]\n', WORDS)
    with pytest.raises(ValueError):
        codex_text("notify", WORDS)
    assert codex_text(codex_text(None, WORDS), None) is None
    # A line of somebody else's that looks alike is not ours.
    theirs = 'notify = ["other"]  # troth\n'
    assert codex_text(theirs, None) == theirs


def test_the_script_of_git_quotes_its_words() -> None:
    import shlex

    words = ["/opt/a b/troth", "hook", "git", "run", "--root", "/x/$(touch y)'\";"]
    line = git_script(words).splitlines()[-1]
    assert shlex.split(line) == ["exec", *words, "$@"]
