# why: ssh, gpg and database clients refuse a key that others may read
# source: https://man7.org/linux/man-pages/man1/ssh.1.html#FILES
test "$(stat -c %a data/key.pem)" = 600
