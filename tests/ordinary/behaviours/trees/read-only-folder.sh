# why: vendored or generated folders are write-protected
# source: https://go.dev/ref/mod#module-cache
# project: odd
test "$(stat -c %a locked)" = 555
test -f locked/file
