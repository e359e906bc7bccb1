# why: projects have relative links, and tools make more of them (`current`, `node_modules/.bin`)
# source: https://man7.org/linux/man-pages/man2/symlink.2.html
# after: test "$(readlink latest)" = src
test "$(readlink bin/app)" = ../src/app.py
grep -q twice bin/app
ln -s src latest
test -f latest/app.py
