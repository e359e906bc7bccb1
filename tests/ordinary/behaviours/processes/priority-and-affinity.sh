# why: builds run with `nice`, benchmarks on one processor
# source: https://man7.org/linux/man-pages/man1/taskset.1.html
# needs: nice taskset
test "$(nice -n 5 nice)" -ge 5
cpu=$(taskset -pc $$ | sed 's/.*: *\([0-9]*\).*/\1/')
taskset -c "$cpu" true
