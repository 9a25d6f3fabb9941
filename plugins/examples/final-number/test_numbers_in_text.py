"""`python3 -m unittest test_numbers_in_text` in this folder: plain Python, no component."""

import unittest
from fractions import Fraction

from numbers_in_text import final_number


class FinalNumber(unittest.TestCase):
    def test_last_number_and_marks(self):
        cases = [
            ("She has 3 + 4 = 7 apples.", "7"),
            ("#### 1,234.50", "1234.5"),
            ("He pays $1,000,000.", "1000000"),
            ("So 12 of 40. The answer is **18**. I checked 3 times.", "18"),
            ("Final answer: -5", "-5"),
            ("The answer is \\boxed{\\frac{3}{4}}.", "3/4"),
            ("\\boxed{x = 12{,}000}", "12000"),
            ("about 12%", "12"),
            ("It is 12.", "12"),
            ("1,5", "5"),
            ("from 10-20", "20"),
            ("x2 is 5", "5"),
            ("6.02e23", "602000000000000000000000"),
            ("3/4", "3/4"),
            (".5", "1/2"),
            ("in the year 2024, 17 were left", "17"),
            ("−3", "-3"),
            ("1 234", "234"),
            ("1\u202f234", "1234"),
        ]
        for text, expected in cases:
            with self.subTest(text):
                self.assertEqual(final_number(text, False).value, Fraction(expected))

    def test_a_decimal_comma(self):
        self.assertEqual(final_number("Das macht 1.234,50 €", True).value, Fraction("1234.5"))

    def test_no_number(self):
        for text in ("", "none", "...", "$ , %"):
            self.assertIsNone(final_number(text, False), text)

    def test_hostile_text_takes_no_time(self):
        for text in ("9" * 200_000, "1," * 100_000, "\\boxed{" * 50_000, "####" * 50_000, "- " * 100_000, "answer " * 50_000):
            final_number(text, False)


if __name__ == "__main__":
    unittest.main()
