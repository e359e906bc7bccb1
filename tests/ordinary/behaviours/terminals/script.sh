# why: steps give a program a terminal with script(1) to see its colours
# source: https://man7.org/linux/man-pages/man1/script.1.html
# needs: script
script -qec 'test -t 1 && echo on a terminal' "$TMPDIR/typescript" < /dev/null > "$TMPDIR/out"
grep -q 'on a terminal' "$TMPDIR/out"
