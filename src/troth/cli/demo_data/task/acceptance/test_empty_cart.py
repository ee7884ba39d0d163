import unittest

from shop.cart import Cart, checkout


class EmptyCartTest(unittest.TestCase):
    def test_checkout_of_an_empty_cart_costs_nothing(self):
        self.assertEqual(checkout(Cart()), {"cents": 0, "label": ""})


if __name__ == "__main__":
    unittest.main()
