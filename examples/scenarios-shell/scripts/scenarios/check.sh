#!/bin/sh
# Gives each number to the program under test and compares what it prints. A line of a case file is a number and its numeral.
passes() {
    while read -r number numeral; do
        test "$(subject sh src/roman.sh "$number" < /dev/null)" = "$numeral" || return 1
    done < "scripts/scenarios/$1"
}
passes plain.txt || { echo "hint: letters stand in order, from M to I" >&2; failed=1; }
passes subtractive.txt || { echo "hint: no letter stands four times in a row" >&2; failed=1; }
exit "${failed:-0}"
