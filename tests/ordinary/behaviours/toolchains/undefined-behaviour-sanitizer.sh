# why: projects look for undefined behaviour
# source: https://clang.llvm.org/docs/UndefinedBehaviorSanitizer.html
# needs: cc
printf 'int main(int n, char **a) { (void)a; int x = 2147483647; return (x + n) == 5; }\n' > "$TMPDIR/a.c"
cc -fsanitize=undefined "$TMPDIR/a.c" -o "$TMPDIR/a"
"$TMPDIR/a" 2>&1 | grep -q 'signed integer overflow'
