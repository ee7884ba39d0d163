"""Mends the code and runs the tests, then goes on editing without running them again."""

import pathlib

from tools import ACCEPTANCE, UNIT, claim, mend_checkout, run

mend_checkout()
for command in (UNIT, ACCEPTANCE):
    claim(command, run(command))
path = pathlib.Path("shop/cart.py")
path.write_text(path.read_text() + "\n\nCURRENCY = 'EUR'\n")
