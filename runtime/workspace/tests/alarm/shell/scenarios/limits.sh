#!/usr/bin/env bash
# Cutting at words: the limit must not leave a dash at the end of the slug.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
printf 'the lighthouse keeper of Skerryvore\n' > "$tmp/in"
bin/slugify --max 14 < "$tmp/in" > "$tmp/out"
printf 'the-lighthouse\n' > "$tmp/expected"
diff -u "$tmp/expected" "$tmp/out" || { echo "hint: a limit may fall on a dash" >&2; exit 1; }
if bin/slugify --frobnicate < /dev/null 2> "$tmp/err"; then
    echo "an unknown option must fail" >&2
    exit 1
fi
test "$(wc -l < "$tmp/err")" -eq 1
for n in 1 2 3; do
    test "$(echo 'ambidextrous otter' | bin/slugify --max "$n")" = "" || exit 1
done
