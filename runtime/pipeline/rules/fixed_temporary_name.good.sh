#!/bin/sh
file=$(mktemp)
app --export > "$file"
grep -q '"total": 3' "$file"
