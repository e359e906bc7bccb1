#!/bin/sh
# Tests of bin/slugify.
set -eu
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "FAIL: $1" >&2; exit 1; }
check() {
    actual=$(printf '%s\n' "$1" | bin/slugify)
    [ "$actual" = "$2" ] || fail "expected '$2', got '$actual'"
}
check "Hello World" "hello-world"
check "Many   Spaces here" "many-spaces-here"
check "" ""
test "$(echo 'one two three' | bin/slugify --max 7)" = "one-two"
if bin/slugify --unknown < /dev/null 2> "$tmp/err"; then
    echo "an unknown option must fail" >&2
    exit 1
fi
test "$(wc -l < "$tmp/err")" -eq 1
echo "ok"
