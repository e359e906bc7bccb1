# why: C, C++, Rust and Go projects run their tests with the address sanitizer
# source: https://clang.llvm.org/docs/AddressSanitizer.html
# needs: cc
# setting: exec.env = { ASAN_OPTIONS = "detect_leaks=0" }
printf 'int main(void) { return 0; }\n' > "$TMPDIR/a.c"
cc -fsanitize=address "$TMPDIR/a.c" -o "$TMPDIR/a"
"$TMPDIR/a"
