"""A ledger of accounts with exact amounts."""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal


class InsufficientFunds(Exception):
    """Raised when a transfer would overdraw the source account."""


class Ledger:
    def __init__(self) -> None:
        self._balances: dict[str, Decimal] = defaultdict(Decimal)
        self._bookings: dict[str, list[tuple[date, str, Decimal]]] = defaultdict(list)

    def deposit(self, account: str, amount: Decimal) -> None:
        if amount < 0:
            raise ValueError("amount must not be negative")
        self._book(account, "deposit", amount)

    def transfer(self, source: str, target: str, amount: Decimal) -> None:
        if amount < 0:
            raise ValueError("amount must not be negative")
        if self._balances[source] < amount:
            raise InsufficientFunds(f"{source} has only {self._balances[source]}")
        self._book(source, f"to {target}", -amount)
        self._book(target, f"from {source}", amount)

    def balance_of(self, account: str) -> Decimal:
        return self._balances[account]

    def statement(self, account: str) -> list[str]:
        cent = Decimal("0.01")
        return [f"{day} {text} {amount.quantize(cent, ROUND_HALF_EVEN)}" for day, text, amount in self._bookings[account]]

    def _book(self, account: str, text: str, amount: Decimal) -> None:
        self._balances[account] += amount
        self._bookings[account].append((date.today(), text, amount))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", required=True)
    args = parser.parse_args()
    ledger = Ledger()
    try:
        with open(args.file) as handle:
            for booking in json.load(handle):
                ledger.deposit(booking["account"], Decimal(booking["amount"]))
    except OSError as error:
        print(f"cannot read {args.file}: {error}", file=sys.stderr)
        return 2
    json.dump({name: str(balance) for name, balance in ledger._balances.items()}, sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
