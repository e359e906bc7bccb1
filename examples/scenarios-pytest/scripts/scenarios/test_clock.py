"""Gives each case to the program under test and compares what it prints.

Nothing of the project is imported here: an import would run the code under test beside the hold-outs.
"""

import pathlib
import subprocess

import pytest

CASES = [line.split(" ", 1) for line in pathlib.Path(__file__).with_name("cases.txt").read_text().splitlines()]


def clock(seconds):
    return subprocess.run(["subject", "python3", "-m", "clock", seconds], stdin=subprocess.DEVNULL, capture_output=True, text=True)


@pytest.mark.parametrize("seconds, expected", CASES)
def test_prints_the_parts_that_are_not_zero(seconds, expected):
    ended = clock(seconds)
    if ended.stdout.strip() != expected:
        print("hint: a part that is zero is left out")
    assert (ended.returncode, ended.stdout) == (0, f"{expected}\n")


def test_refuses_what_is_no_number():
    if clock("soon").returncode == 0:
        print("hint: a word instead of a number is an error")
    assert clock("soon").returncode != 0
