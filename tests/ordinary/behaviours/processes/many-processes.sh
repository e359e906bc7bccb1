# why: parallel builds start hundreds of short processes
# source: https://man7.org/linux/man-pages/man1/xargs.1.html
test "$(seq 200 | xargs -P 16 -n 1 sh -c 'echo "$0"' | wc -l)" = 200
