"""E's books: changes of points against the start of the run (§3 invariant 1).

C begins at 0 and may go below; whatever happens, the three sum to 0.
"""

from __future__ import annotations

from troth.core.errors import Defect


class Escrow:
    """The points of C and A, and each hold, which is paid or refunded exactly once."""

    __slots__ = ("_held", "a", "c", "e")

    def __init__(self) -> None:
        self.c = self.a = self.e = 0
        self._held: dict[str, int] = {}

    def lock(self, offer_id: str, amount: int) -> None:
        """Take the amount from C and hold it for the deal.

        Raises:
            Defect: ``E_DEFECT``, the deal has a hold.
        """
        if offer_id in self._held:
            raise Defect("E_DEFECT", f"a second hold for {offer_id!r}")
        self._held[offer_id] = amount
        self.c -= amount
        self.e += amount

    def pay(self, offer_id: str) -> int:
        """Release the deal's hold to A and return how much that was.

        Raises:
            Defect: ``E_DEFECT``, there is no hold.
        """
        amount = self._take(offer_id)
        self.a += amount
        return amount

    def refund(self, offer_id: str) -> int:
        """Give the deal's hold back to C and return how much that was; without a hold nothing moves."""
        if offer_id not in self._held:
            return 0
        amount = self._take(offer_id)
        self.c += amount
        return amount

    def _take(self, offer_id: str) -> int:
        amount = self._held.pop(offer_id, None)
        if amount is None:
            raise Defect("E_DEFECT", f"no hold for {offer_id!r}")
        self.e -= amount
        return amount

    def held(self, offer_id: str) -> int | None:
        """Return what is held for the deal; ``None`` when there is no hold."""
        return self._held.get(offer_id)

    def balances(self) -> dict[str, int]:
        """Return each party's change since the start."""
        return {"C": self.c, "A": self.a, "E": self.e}
