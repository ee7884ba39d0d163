"""What the scripted agents share: a real edit, a real run, and a claim about it."""

import json
import os
import pathlib
import subprocess

UNIT = ["python3", "-m", "unittest", "-q", "tests.test_cart"]
ACCEPTANCE = ["python3", "-m", "unittest", "-q", "acceptance.test_empty_cart"]


def mend_checkout():
    """Edit the source so that an empty cart can be checked out."""
    path = pathlib.Path("shop/cart.py")
    text = path.read_text()
    before = '    label = dearest(cart)\n'
    after = '    if not cart.lines:\n        return {"cents": 0, "label": ""}\n    label = dearest(cart)\n'
    assert text.count(before) == 1
    path.write_text(text.replace(before, after))


def run(argv):
    """Really run a command and return its exit status."""
    return subprocess.run(argv, check=False).returncode


def claim(argv, status):
    """Tell the harness that a command was run, and how it ended."""
    with open(os.environ["TROTH_CLAIMS"], "a") as file:
        file.write(json.dumps({"argv": argv, "exit": status}) + "\n")
