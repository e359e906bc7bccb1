# why: programs drop colours and questions if they have no terminal
# source: https://man7.org/linux/man-pages/man3/isatty.3.html
! test -t 0
! test -t 1
! sh -c ': < /dev/tty' 2> /dev/null
