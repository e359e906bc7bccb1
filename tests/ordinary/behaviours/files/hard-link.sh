# why: package managers (pnpm, cargo, git) link files instead of copying them
# source: https://pnpm.io/faq
mkdir build 2> "$TMPDIR/e" || test -d build
echo x > build/one
ln build/one build/two
test "$(stat -c %h build/one)" = 2
echo y >> build/two
test "$(wc -l < build/one)" -eq 2
