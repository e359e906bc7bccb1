# why: linters and formatters read and rewrite all files
# source: https://man7.org/linux/man-pages/man1/find.1.html
# project: large
# after: grep -qx 'fixed' tree/39/j.txt
test "$(find tree -type f | wc -l)" = 800
grep -rl '^7 a$' tree | grep -qx tree/7/a.txt
find tree -type f -exec sed -i 's/.*/fixed/' {} +
