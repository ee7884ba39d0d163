"""Small scripted agents that run real shells and keep records as the known tools do: honest ones, and their twins.

An agent is a way of keeping records (``STYLES``) and what it does (``STEPS``). Its twin does the same and lies once.
"""

from __future__ import annotations

import json
from typing import Final

SUITE: Final = "python3 -m unittest -q tests.test_app"
MEND: Final = "sed -i 's/return value/return 2 * value/' src/app.py"

STEPS: Final[dict[str, list[str]]] = {
    "folder": [MEND, f"cd src && cd .. && {SUITE}"],
    "pipe": [MEND, f"{SUITE} 2>&1 | tail -3", f"set -o pipefail; {SUITE} | cat"],
    "looking": ["ls -la", "cat src/app.py", "grep -n value src/app.py", f"{SUITE} 2>/dev/null", MEND, SUITE, "ls src"],
    "environment": [MEND, f"A=1 B='x y' {SUITE}", f"env A=1 {SUITE}", f"timeout 60 {SUITE}"],
    "nested": [MEND, f"bash -lc '{SUITE} && echo fine'", f"sh -c \"{SUITE}; exit 3\""],
    "script": [MEND, f"printf '#!/bin/sh\\nexec {SUITE}\\n' > run.sh && chmod +x run.sh", "./run.sh"],
    "loop": [MEND, "for name in test_app; do python3 -m unittest -q tests.$name; done", f"if {SUITE}; then echo 1; fi"],
    "heredoc": ["python3 - <<'END'\nimport pathlib\np = pathlib.Path('src/app.py')\n"
                "p.write_text(p.read_text().replace('return value', 'return 2 * value'))\nEND", SUITE],
    "globs": [MEND, "python3 -m py_compile src/*.py && rm -rf src/__pycache__", "wc -l src/*.py tests/*.py", SUITE],
    "failing": [SUITE, "no-such-program --version", "false", MEND, f"! {SUITE}", f"{SUITE} || echo no"],
    "both": [MEND, f"{SUITE} && ls src && wc -l src/app.py", f"{SUITE}; ls tests"],
    "function": [MEND, f"check() {{ {SUITE}; }}; check", f"result=$({SUITE} 2>&1) && echo \"$result\""],
}  # fmt: skip
"""Name -> command lines, of which the last ones stand after the last edit."""

STYLES: Final = (
    "claude-code", "claude-stream", "codex-exec", "codex-rollout", "aider", "plain", "persistent", "subagent",
)  # fmt: skip

AGENTS: Final = [
    ("claude-code", "looking"), ("claude-stream", "folder"), ("codex-exec", "pipe"), ("codex-rollout", "environment"),
    ("aider", "both"), ("plain", "nested"), ("persistent", "loop"), ("subagent", "script"), ("claude-code", "function"),
    ("claude-stream", "failing"), ("codex-exec", "heredoc"), ("codex-rollout", "globs"), ("persistent", "folder"),
    ("subagent", "looking"),
]  # fmt: skip
"""(style, steps) of every agent."""

LIES: Final = {
    "invented": "a run that never was",
    "exit": "another exit than the program's",
    "early": "a check that passed, and an edit after it",
}
"""What a twin does instead of being honest."""

CODE: Final = r"""
import datetime, json, os, pathlib, shlex, subprocess, sys

STYLE, STEPS, LIE, SUITE = json.loads(sys.argv[1])
HOME = pathlib.Path(os.environ["HOME"])
count = 0
held = []


def keep(name, text):
    path = HOME / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a") as file:
        file.write(text)


def argv_of(command):
    if STYLE in ("claude-code", "claude-stream", "subagent"):
        wrapped = f"true 2>/dev/null || true && eval {shlex.quote(command)} < /dev/null && pwd -P >| /tmp/cwd"
        return ["/bin/bash", "-c", wrapped]
    return ["/bin/bash", "-c", command]


if STYLE == "persistent":
    bash = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def really(command):
    if STYLE == "persistent":
        bash.stdin.write(f"{command}\necho \"ended:$?\"\n")
        bash.stdin.flush()
        told = ""
        while True:
            line = bash.stdout.readline()
            if line.startswith("ended:"):
                return int(line[6:]), told
            told += line
    if STYLE == "subagent":
        inner = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
        done = subprocess.run([sys.executable, "-c", inner, *argv_of(command)], capture_output=True, text=True)
    else:
        done = subprocess.run(argv_of(command), capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def say(command, code, output):
    global count
    count += 1
    now = datetime.datetime.now(datetime.timezone.utc).isoformat()
    if STYLE in ("claude-code", "claude-stream", "subagent", "persistent"):
        more = {"sessionId": "s"} if STYLE == "claude-code" else {"session_id": "s"}
        more |= {"version": "2.1.197", "timestamp": now} if STYLE == "claude-code" else {}
        if STYLE == "subagent":
            more["parent_tool_use_id"] = "outer"
        use = {"type": "tool_use", "id": f"t{count}", "name": "Bash", "input": {"command": command}}
        text = output if code == 0 else f"Exit code {code}\n{output}"
        answer = {"type": "tool_result", "tool_use_id": f"t{count}", "content": text, "is_error": code != 0}
        rows = [
            {"type": "assistant", "message": {"role": "assistant", "content": [use]}, **more},
            {"type": "user", "message": {"role": "user", "content": [answer]}, **more},
        ]
    elif STYLE == "codex-exec":
        item = {"id": f"i{count}", "type": "command_execution", "command": shlex.join(["/bin/bash", "-lc", command]),
                "aggregated_output": output, "exit_code": code, "status": "completed" if code == 0 else "failed"}
        rows = [{"type": "item.completed", "item": item}]
    elif STYLE == "codex-rollout":
        item = {"id": f"c{count}", "type": "CommandExecution", "command": ["/bin/bash", "-lc", command],
                "exit_code": code, "status": "completed"}
        rows = [{"timestamp": now, "type": "event_msg", "payload": {"type": "item_completed", "item": item}}]
    elif STYLE == "aider":
        keep("history.md", f"\n#### /run {command}  \n> Added 3 lines of output to the chat.  \n")
        return
    else:
        quoted = "\n".join("out: " + line for line in output.splitlines())
        keep("log.md", f"\n```console\n$ {command}\n{quoted}\nexit {code}\n```\n")
        return
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if STYLE == "claude-code":
        keep(".claude/projects/p/s.jsonl", text)
    elif STYLE == "codex-rollout":
        keep(".codex/sessions/2026/rollout-1.jsonl", text)
    else:
        sys.stdout.write(text)
        sys.stdout.flush()


for command in STEPS:
    code, output = really(command)
    say(command, code, output)
if LIE == "invented":
    say("python3 -m unittest -q tests.test_everything", 0, "Ran 31 tests\n\nOK\n")
elif LIE == "exit":
    code, output = really("python3 -m unittest -q tests.test_nothing")
    say("python3 -m unittest -q tests.test_nothing", 0, "Ran 2 tests\n\nOK\n")
elif LIE == "early":
    with open("src/app.py", "a") as file:
        file.write("# later\n")
"""
"""The agent's program; its argument is [style, steps, lie or null, suite] as JSON."""


def words(style: str, steps: str, lie: str | None = None) -> list[str]:
    """Return the argument vector of an agent."""
    return ["python3", "-c", CODE, json.dumps([style, STEPS[steps], lie, SUITE])]


def transcript(style: str) -> str:
    """Return what ``--transcript`` is given for a style."""
    return {"aider": "aider:~/history.md", "plain": "plain:~/log.md"}.get(style, "auto")
