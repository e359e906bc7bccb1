# why: compilers, archivers and tests unpack to the folder for temporary files
# source: https://gcc.gnu.org/onlinedocs/gcc/Environment-Variables.html
head -c 200000000 /dev/zero > "$TMPDIR/big"
test "$(stat -c %s "$TMPDIR/big")" = 200000000
