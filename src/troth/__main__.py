"""``python -m troth``."""

import sys

if not sys.flags.safe_path:
    # `-m` puts the current folder before everything, and there may stand what an agent wrote.
    del sys.path[0]

from troth.cli.main import console

console()
