# why: every tool that generates code writes new files, and they must come into the project
# source: https://man7.org/linux/man-pages/man2/open.2.html
# after: grep -qx generated src/generated.py
echo generated > src/generated.py
test -s src/generated.py
