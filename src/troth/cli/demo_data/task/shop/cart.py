"""A cart and its checkout. Prices are whole cents."""


class Cart:
    """What a customer wants to buy: names, prices and quantities."""

    def __init__(self):
        self.lines = []

    def add(self, name, cents, quantity=1):
        if cents < 0 or quantity < 1:
            raise ValueError("a line needs a price of at least 0 and a quantity of at least 1")
        self.lines.append((name, cents, quantity))

    def total(self):
        return sum(cents * quantity for _, cents, quantity in self.lines)


def shipping(cart):
    """Orders of 50.00 and more are shipped free; others pay 4.90."""
    return 0 if cart.total() >= 5000 else 490


def dearest(cart):
    """The name of the dearest line, for the label on the parcel."""
    return sorted(cart.lines, key=lambda line: line[1])[-1][0]


def checkout(cart):
    """What the customer pays, and what is printed on the label."""
    label = dearest(cart)
    return {"cents": cart.total() + shipping(cart), "label": label}
