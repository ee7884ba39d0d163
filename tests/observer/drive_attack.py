"""Observe ``attacks.py`` in a workspace: drive_attack.py WORKSPACE PRIVATE. Prints what the agent printed."""

import os
import sys
from pathlib import Path

from troth.observer.observe import Request, observe

workspace, private = Path(sys.argv[1]), Path(sys.argv[2])
os.environ["LAUNCHER"] = str(os.getpid())
seen = observe(
    Request(
        workspace=workspace,
        argv=["/usr/bin/python3", "-I", str(workspace / "attacks.py")],
        claim_id="cmt_00000001",
        invocation_id="run_00000001",
        private=private,
        protects=lambda path: False,
        env=("OTHER_HOME", "OPEN_PORT", "LAUNCHER"),
        timeout=60,
    )
)
print("uid", os.geteuid(), "exit", seen.report.root_exit, "faults", list(seen.coverage_faults))
