"""Rules for writers of records, held against real runs: launch facts, caches, links, endings (done records §13)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support.observing import needs_observer
from support.watching import Watch, watch, workspace
from troth.observer.sandbox import CACHES

__all__ = ["watch", "workspace"]
pytestmark = [needs_observer, pytest.mark.observer]

USE_CACHES = (
    "import subprocess, sys\n"
    "subprocess.run([sys.executable, '-m', 'unittest', '-q', 'tests.test_app'])\n"
    "import src.app\n"
)


def test_the_launch_record_tells_how_the_sandbox_was_made(watch: Watch, tmp_path: Path) -> None:
    extra = tmp_path / "extra"
    extra.mkdir()
    plain, again = watch("pass"), watch("pass")
    other = watch("pass", allow_read=(extra,))
    launch = plain.launch
    version = subprocess.run(["bwrap", "--version"], capture_output=True, text=True, check=True).stdout
    assert launch["backend"] == "bubblewrap"
    assert launch["image"] == launch["image_id"]
    assert launch["runtime_version"] in version
    assert (launch["container_argv"][0], launch["network"]) == ("bwrap", False)
    assert launch["container_argv"][-len(launch["agent_argv"]) :] == launch["agent_argv"]
    assert "--unshare-net" in launch["container_argv"] or "--unshare-all" in launch["container_argv"]
    assert str(extra) in other.launch["container_argv"]
    # The image is the root's description: the same root, the same digest.
    assert launch["image"] == again.launch["image"] != other.launch["image"]


def test_caches_of_a_run_do_not_land_in_the_workspace_and_the_names_are_listed(watch: Watch, workspace: Path) -> None:
    (workspace / "tests" / "__init__.py").write_text("")
    seen = watch(USE_CACHES)
    assert seen.exit == 0
    assert seen.changes == []
    assert {name: seen.launch["env"].get(name) for name in CACHES} == dict(CACHES)


def test_what_the_task_itself_asks_for_is_left_alone(watch: Watch) -> None:
    seen = watch(
        "import os, subprocess, sys\n"
        "del os.environ['PYTHONDONTWRITEBYTECODE']\n"
        "subprocess.run([sys.executable, '-c', 'import src.app'])\n"
        "open('.coverage', 'w').write('x')\n"
    )
    written = {change[1] for change in seen.changes}
    assert ".coverage" in written
    assert any(path.startswith("src/__pycache__/") for path in written)


def test_a_protected_file_replaced_by_a_link_is_a_mutation_and_the_link_is_reported(watch: Watch) -> None:
    seen = watch("import os\nos.unlink('tests/test_app.py')\nos.symlink('../src/app.py', 'tests/test_app.py')\n")
    assert ("unlink", "tests/test_app.py") in seen.changes
    assert "tests/test_app.py" in {change[-1] for change in seen.changes if change[0] == "link"}
    assert seen.launch_receipt["sensors"]["s3_tree"]["symlinks"] == [
        {"path": "tests/test_app.py", "text": "../src/app.py"}
    ]
    assert "tests/test_app.py" not in json.loads(seen.observed.files["tree.json"])["files"]
    assert seen.complete


def test_sockets_and_pipes_are_reported_beside_the_tree(watch: Watch) -> None:
    seen = watch("import os, socket\nsocket.socket(socket.AF_UNIX).bind('src/s')\nos.mkfifo('src/p')\n")
    assert seen.launch_receipt["sensors"]["s3_tree"]["special"] == ["src/p", "src/s"]
    assert {"src/p", "src/s"} <= {change[1] for change in seen.changes}
    assert set(json.loads(seen.observed.files["tree.json"])["files"]) == {"src/app.py", "tests/test_app.py"}
