# why: scripts use the usual devices
# source: https://man7.org/linux/man-pages/man4/null.4.html
echo x > /dev/null
test "$(head -c 16 /dev/urandom | wc -c)" = 16
test "$(head -c 4 /dev/zero | wc -c)" = 4
! echo x 2> /dev/null > /dev/full
echo x > /dev/stdout
