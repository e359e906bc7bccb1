# why: the address sanitizer looks for leaks at the end, which a good program must survive
# source: https://clang.llvm.org/docs/LeakSanitizer.html
# needs: cc
printf '#include <stdlib.h>\nint main(void) { free(malloc(10)); return 0; }\n' > "$TMPDIR/a.c"
cc -fsanitize=leak "$TMPDIR/a.c" -o "$TMPDIR/a"
"$TMPDIR/a"
