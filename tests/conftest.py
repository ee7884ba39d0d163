"""What every test starts from, whoever started the tests."""

from __future__ import annotations

import signal

# A shell that starts the tests in the background lets them, and so all that they start, ignore interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
