"""Mends the code, runs the tests, says what it ran."""

from tools import ACCEPTANCE, UNIT, claim, mend_checkout, run

mend_checkout()
for command in (UNIT, ACCEPTANCE):
    claim(command, run(command))
