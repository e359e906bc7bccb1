# why: people and agents look for a crash with gdb
# source: https://sourceware.org/gdb/current/onlinedocs/gdb.html/Batch-Mode.html
# needs: gdb cc
printf 'int main(void) { return 3; }\n' > "$TMPDIR/a.c"
cc -g "$TMPDIR/a.c" -o "$TMPDIR/a"
gdb -batch -ex 'break main' -ex run -ex 'info line' -ex kill "$TMPDIR/a" > "$TMPDIR/out" 2>&1
grep -q 'Breakpoint 1, main' "$TMPDIR/out"
