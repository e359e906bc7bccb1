# why: programs greet, log and choose files by USER, LOGNAME and SHELL
# source: https://man7.org/linux/man-pages/man7/environ.7.html
test -n "${USER:-}"
test -n "${LOGNAME:-}"
test -n "${SHELL:-}"
