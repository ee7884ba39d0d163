"""Record the samples anew: the real tools under the real observer, a local endpoint in the model's place.

``PYTHONPATH=src:tests python tests/observer/transcripts/record.py NAME…``, with the tools' programs on the search path.
What the tool wrote about itself stands in the sample's folder, beside what the observer saw; machine paths are
replaced, long texts that claim nothing (instructions, lists of tools) are cut, and the tool's version goes into
``sample.json``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from support.model_endpoint import playing
from troth.observer.observe import Observed, Request, observe

HERE = Path(__file__).parent
SUITE = "python3 -m unittest -q tests.test_cart"
FILES = {
    "cart.py": "def label(names):\n    return sorted(names)[-1]\n",
    "tests/__init__.py": "",
    "tests/test_cart.py": (
        "import unittest\n\nimport cart\n\n\nclass CartTest(unittest.TestCase):\n"
        "    def test_empty(self):\n        self.assertEqual(cart.label([]), '')\n\n"
        "    def test_one(self):\n        self.assertEqual(cart.label(['a']), 'a')\n"
    ),
}
MENDED = "def label(names):\n    return max(names, default='')\n"
LAST = (
    "Mended. To check the whole shop, run `npm test`; I have not. The commit message quotes it:\n\n"
    "> ran `pytest -x`, exit 0\n\n```sh\nnpm run lint\n```\n"
)
COMMANDS = [
    f"cd tests/.. && {SUITE}",
    "printf '%s\\n' 'def label(names):' \"    return max(names, default='')\" > cart.py",
    f"{SUITE} 2>&1 | tail -3",
    f"A=1 {SUITE}",
    "grep -c nothing cart.py",
    "no-such-program --version",
    "cat <<'END' | python3 -\nprint('from here')\nEND",
    "for name in cart; do python3 -m py_compile $name.py; done",
    f"bash -lc '{SUITE} && echo done'",
]
"""What the model has the tool run, in order: what people's agents run."""


def lay_out(root: Path) -> Path:
    shop = root / "shop"
    for name, text in FILES.items():
        (shop / name).parent.mkdir(parents=True, exist_ok=True)
        (shop / name).write_text(text)
    return shop


def under_observation(
    root: Path, shop: Path, argv: list[str], environment: dict[str, str], reads: list[Path]
) -> Observed:
    private = root / "private"
    private.mkdir(mode=0o700)
    os.environ |= environment
    request = Request(
        workspace=shop, argv=argv, claim_id="cmt_00000001", invocation_id="run_00000001", private=private,
        protects=lambda _: False, timeout=150, network=True, allow_read=tuple(reads), env=tuple(environment),
        terminal=False, show=None,
    )  # fmt: skip
    return observe(request)


def program(name: str) -> Path:
    found = shutil.which(name)
    assert found, f"{name} is not on the search path"
    return Path(found)


def version(name: str) -> str:
    told = subprocess.run([name, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"\d+\.\d+\.\d+", told)[0]


def packages(name: str) -> Path:
    """The folder of packages that a program of npm's stands in."""
    return next(folder for folder in program(name).resolve().parents if folder.name == "node_modules")


def cut(value: Any, most: int = 600) -> Any:
    """Return a JSON value with its long texts cut, those of commands, results and messages excepted."""
    if isinstance(value, dict):
        return {name: cut(item, most) for name, item in value.items()}
    if isinstance(value, list):
        return [cut(item, most) for item in value[:40]]
    if isinstance(value, str) and len(value) > most:
        return value[:most] + "… (cut)"
    return value


def scrubbed(text: str, root: Path) -> str:
    text = text.replace(str(root / "shop"), "/srv/shop").replace(str(root), "/srv")
    text = text.replace(str(root / "shop").replace("/", "-").replace("_", "-"), "-srv-shop")
    for name in ("claude", "codex", "aider"):
        found = shutil.which(name)
        if found:
            kept = next(path for path in Path(found).parents if path.name in ("node_modules", "bin")).parent
            text = text.replace(str(kept), "/opt/tools")
    return re.sub(r"http://127\.0\.0\.1:\d+", "http://127.0.0.1:1", text)


def keep(
    name: str, file: str, told: str, root: Path, *, observed: Observed, tool: str, release: str, form: str
) -> None:
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    text = scrubbed(told, root)
    if file.endswith(".jsonl"):
        text = "".join(json.dumps(cut(json.loads(line)), ensure_ascii=False) + "\n" for line in text.splitlines())
    (folder / file).write_text(text)
    observation = json.loads(scrubbed(observed.files["observation.json"].decode(), root))
    shells = [event for event in observation["events"] if event["type"] == "exec" or "path" in event]
    observation["events"] = [cut(event, 700) for event in shells]
    (folder / "observation.json").write_text(json.dumps(observation, indent=0, ensure_ascii=False) + "\n")
    about = {"tool": tool, "version": release, "format": form, "file": file, "model": "a local endpoint of the tests"}
    (folder / "sample.json").write_text(json.dumps(about, indent=2) + "\n")
    print(name, len(text), len(observation["events"]), observation["coverage"], observed.report.root_exit)


def claude(root: Path, *, subagent: bool) -> None:
    shop = lay_out(root)
    calls: list[Any] = [("Bash", {"command": command, "description": "work"}) for command in COMMANDS]
    if subagent:
        calls = [
            ("Task", {"description": "test", "prompt": "Run the suite.", "subagent_type": "general-purpose"}),
            ("Bash", {"command": f"{SUITE} 2>&1", "description": "inside"}),
            "The suite fails.",
            ("Bash", {"command": "ls", "description": "outside"}),
        ]
    else:
        calls += [
            ("Bash", {"command": "git push origin main", "description": "denied"}),
            ("Bash", {"command": "sleep 1 && python3 -c 'print(1)'", "run_in_background": True}),
        ]
    with playing(*calls, LAST) as model:
        environment = {
            "ANTHROPIC_API_KEY": "test-key", "ANTHROPIC_BASE_URL": model.url, "DISABLE_TELEMETRY": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
        }  # fmt: skip
        words = [
            str(program("claude").resolve()), "-p", "--output-format", "stream-json", "--verbose",
            "--allowedTools", "Bash,Edit,Read,Task",
            "--disallowedTools", "Bash(git push:*)", "--model", "model-9", "mend the cart",
        ]  # fmt: skip
        observed = under_observation(root, shop, words, environment, [packages("claude")])
    about = {"observed": observed, "tool": "claude-code", "release": version("claude")}
    suffix = "-subagent" if subagent else ""
    told = (root / "private/transcript").read_text().replace("\r\n", "\n")
    keep(f"claude-stream{suffix}", "stream.jsonl", told, root, form="claude-stream", **about)
    for path in sorted((root / "private/home/.claude/projects").rglob("*.jsonl")):
        inner = path.stem if path.stem.startswith("agent") else "session"
        name = "subagent.jsonl" if inner != "session" else "session.jsonl"
        keep(f"claude-code{suffix}", name, path.read_text(), root, form="claude-code", **about)


def codex(root: Path) -> None:
    shop = lay_out(root)
    calls = [("exec_command", {"cmd": command}) for command in COMMANDS]
    with playing(*calls, LAST) as model:
        environment = {"CODEX_API_KEY": "test-key"}
        words = [
            "/usr/bin/env", "node", str(program("codex").resolve()), "exec", "--json", "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "-c", f'openai_base_url="{model.url}/v1"', "mend the cart",
        ]  # fmt: skip
        observed = under_observation(root, shop, words, environment, [packages("codex")])
    about = {"observed": observed, "tool": "codex", "release": version("codex")}
    told = (root / "private/transcript").read_text().replace("\r\n", "\n")
    keep(
        "codex-exec",
        "events.jsonl",
        "".join(line + "\n" for line in told.splitlines() if line.startswith("{")),
        root,
        form="codex-exec",
        **about,
    )
    for path in sorted((root / "private/home/.codex/sessions").rglob("rollout-*.jsonl")):
        keep("codex-rollout", "rollout.jsonl", path.read_text(), root, form="codex-rollout", **about)


def aider(root: Path) -> None:
    shop = lay_out(root)
    suggested = f"To see the suite pass:\n\n```bash\n{SUITE}\n```\n"
    with playing("Nothing to change.", suggested, LAST) as model:
        environment = {"OPENAI_API_KEY": "test-key", "OPENAI_API_BASE": f"{model.url}/v1"}
        typed = [f"/run {SUITE}", "please test", "/test python3 -m compileall -q cart.py", "that is all"]
        script = root / "typed.txt"
        script.write_text("\n".join(typed) + "\n")
        words = [
            "/bin/sh", "-c",
            f"{program('aider')} --model openai/model-9 --no-git --no-check-update --no-show-model-warnings"
            " --no-show-release-notes --analytics-disable --yes-always --no-pretty --no-fancy-input"
            " --map-tokens 0 --chat-history-file ~/history.md --input-history-file ~/input < ../typed.txt",
        ]  # fmt: skip
        reads = [program("aider").parent.parent, script, Path(sys.base_prefix)]
        observed = under_observation(root, shop, words, environment, reads)
    print((root / "private/transcript").read_text()[-3000:])
    told = (root / "private/home/history.md").read_text()
    keep("aider", "history.md", told, root, form="aider", observed=observed, tool="aider", release=version("aider"))


def main(names: list[str]) -> None:
    made = {
        "claude": lambda root: claude(root, subagent=False),
        "claude-subagent": lambda root: claude(root, subagent=True),
        "codex": codex,
        "aider": aider,
    }
    for name in names or list(made):
        root = Path(tempfile.mkdtemp(prefix="troth-sample-"))
        made[name](root)


if __name__ == "__main__":
    main(sys.argv[1:])
