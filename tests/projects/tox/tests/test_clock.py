from clock import duration


def test_minutes_come_first():
    assert duration(65) == "1m 5s"
