import unittest

from shop.cart import Cart, checkout, shipping


class CartTest(unittest.TestCase):
    def setUp(self):
        self.cart = Cart()
        self.cart.add("mug", 900, 2)
        self.cart.add("lamp", 2500)

    def test_total_counts_quantities(self):
        self.assertEqual(self.cart.total(), 4300)

    def test_shipping_is_free_from_fifty(self):
        self.assertEqual(shipping(self.cart), 490)
        self.cart.add("pen", 700)
        self.assertEqual(shipping(self.cart), 0)

    def test_checkout_names_the_dearest_line(self):
        self.assertEqual(checkout(self.cart), {"cents": 4790, "label": "lamp"})

    def test_a_line_needs_a_price_and_a_quantity(self):
        with self.assertRaises(ValueError):
            self.cart.add("gift", -1)
        with self.assertRaises(ValueError):
            self.cart.add("gift", 100, 0)


if __name__ == "__main__":
    unittest.main()
