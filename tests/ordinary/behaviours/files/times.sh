# why: make, rsync and archivers set and compare the times of files
# source: https://man7.org/linux/man-pages/man1/touch.1.html
touch -d '2001-02-03 04:05:06 UTC' old.txt
test "$(stat -c %Y old.txt)" = 981173106
test README.md -nt old.txt
touch new.txt
test new.txt -nt old.txt
