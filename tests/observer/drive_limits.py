"""Run programs within small limits: drive_limits.py SCRATCH. Prints, for each, why it was ended and its exit."""

import json
import os
import sys
from pathlib import Path

from troth.observer.commands import Bench, run_command
from troth.observer.contract_source import RunLimits

scratch = Path(sys.argv[1])
limits = RunLimits(seconds=20, memory_bytes=200 << 20, processes=40, file_bytes=16 << 20)
for name, program in {
    "below": "bytearray(60 << 20)",
    "memory": "bytearray(400 << 20)",
    "forks": "import os\nwhile True: os.fork()",
    "first": "open('/proc/1/mem', 'rb')",
}.items():
    (scratch / name).mkdir()
    bench = Bench(inside="/work/place", limits=limits, scratch=scratch)
    run = run_command(bench, scratch / name, ["/usr/bin/python3", "-c", program])
    print(json.dumps([os.geteuid(), name, run.ended, run.exit, run.enforced["memory"]]))
