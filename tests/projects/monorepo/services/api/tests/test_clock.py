import unittest

from clock import duration


class Clock(unittest.TestCase):
    def test_minutes_come_first(self):
        self.assertEqual(duration(65), "1m 5s")
