"""Tests of the ledger."""

import json
import subprocess
import sys
from decimal import Decimal

import pytest

from ledger import InsufficientFunds, Ledger


@pytest.fixture
def ledger():
    ledger = Ledger()
    ledger.deposit("alice", Decimal("50.00"))
    return ledger


def test_deposit(ledger):
    ledger.deposit("alice", Decimal("0.50"))
    assert ledger.balance_of("alice") == Decimal("50.50")


def test_transfer_moves_money(ledger):
    ledger.transfer("alice", "bob", Decimal("20.00"))
    assert ledger.balance_of("bob") == Decimal("20.00")


def test_transfer_cannot_overdraw(ledger):
    with pytest.raises(InsufficientFunds):
        ledger.transfer("alice", "bob", Decimal("50.01"))
    assert ledger.balance_of("bob") == Decimal("0")


@pytest.mark.parametrize("amount", [Decimal("-1"), Decimal("-5.00")])
def test_negative_amounts_raise(ledger, amount):
    with pytest.raises(ValueError):
        ledger.deposit("alice", amount)


def test_command_line(tmp_path):
    file = tmp_path / "bookings.json"
    file.write_text(json.dumps([{"account": "alice", "amount": "1.00"}]))
    result = subprocess.run([sys.executable, "-m", "ledger", "--file", str(file)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {"alice": "1.00"}


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__]))
