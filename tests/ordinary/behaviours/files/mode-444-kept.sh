# why: generated or vendored files are read-only so that nobody edits them
# source: https://man7.org/linux/man-pages/man1/chmod.1.html
# after: test "$(stat -c %a data/fixed.txt)" = 444
test "$(stat -c %a data/fixed.txt)" = 444
