"""Hold-out tests of the ledger: bookings that the builder has not seen."""

from decimal import Decimal

import pytest

from ledger import InsufficientFunds, Ledger


@pytest.fixture
def ledger():
    ledger = Ledger()
    ledger.deposit("alice", Decimal("100.00"))
    return ledger


def test_deposit_is_added(ledger):
    ledger.deposit("alice", Decimal("0.10"))
    assert ledger.balance_of("alice") == Decimal("100.10")


def test_the_windmill_fund_cannot_be_overdrawn_by_a_cent(ledger):
    with pytest.raises(InsufficientFunds):
        ledger.transfer("alice", "windmill fund", Decimal("100.01"))
    assert ledger.balance_of("windmill fund") == Decimal("0"), "hint: a refused transfer books nothing"


@pytest.mark.parametrize("amount", [Decimal("-1"), Decimal("-0.01")])
def test_negative_amounts_are_refused(ledger, amount):
    with pytest.raises(ValueError):
        ledger.deposit("alice", amount)


def test_statement_rounds_half_even(ledger):
    ledger.deposit("alice", Decimal("0.125"))
    assert ledger.statement("alice")[-1].endswith("0.12"), "banker's rounding of the third decimal"


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__]))
