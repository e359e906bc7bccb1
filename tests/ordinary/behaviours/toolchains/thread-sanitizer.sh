# why: projects with threads look for data races
# source: https://clang.llvm.org/docs/ThreadSanitizer.html
# needs: cc setarch
printf 'int main(void) { return 0; }\n' > "$TMPDIR/a.c"
cc -fsanitize=thread "$TMPDIR/a.c" -o "$TMPDIR/a"
"$TMPDIR/a" || setarch -R "$TMPDIR/a"
