# why: `install` and packaging scripts set owner and group to the present user
# source: https://man7.org/linux/man-pages/man1/chown.1.html
echo x > owned.txt
chown "$(id -u):$(id -g)" owned.txt
test "$(stat -c %u owned.txt)" = "$(id -u)"
