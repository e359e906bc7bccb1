# why: new files are readable by the group and others, as package builds demand
# source: https://man7.org/linux/man-pages/man2/umask.2.html
test "$(umask)" = 0022
touch new.txt
test "$(stat -c %a new.txt)" = 644
