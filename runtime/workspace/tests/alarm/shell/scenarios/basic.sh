#!/bin/sh
# Slugs of ordinary titles.
set -eu
cd "$(dirname "$0")/../.."
fail() { echo "FAIL: $1" >&2; exit 1; }
check() {
    actual=$(printf '%s\n' "$1" | bin/slugify)
    [ "$actual" = "$2" ] || fail "slugify '$1': expected '$2', got '$actual'"
}
check "Hello World" "hello-world"
check "  Seventeen   green herons " "seventeen-green-herons"
check "Crème brûlée, twice!" "cr-me-br-l-e-twice" || echo "hint: only ASCII letters stay"
check "a_b__c" "a-b-c"
echo "ok"
