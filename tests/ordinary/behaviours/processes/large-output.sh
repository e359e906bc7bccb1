# why: builds and tests print megabytes, and must not fail or hang for it
# source: https://man7.org/linux/man-pages/man7/pipe.7.html
seq 1 500000
seq 1 100000 >&2
