"""``python -m troth``."""

from troth.cli.main import console

console()
