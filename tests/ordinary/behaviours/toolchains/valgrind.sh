# why: C projects run their tests below valgrind
# source: https://valgrind.org/docs/manual/quick-start.html
# needs: valgrind cc
printf '#include <stdlib.h>\nint main(void) { free(malloc(10)); return 0; }\n' > "$TMPDIR/a.c"
cc -g "$TMPDIR/a.c" -o "$TMPDIR/a"
valgrind -q --error-exitcode=9 --leak-check=full "$TMPDIR/a"
