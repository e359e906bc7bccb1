# why: tests of command-line programs open a pseudo-terminal
# source: https://docs.python.org/3/library/pty.html
# needs: python3
python3 -c 'import os, pty
pid, fd = pty.fork()
if pid == 0: os.execvp("sh", ["sh", "-c", "test -t 0 && tty > /dev/null && echo yes"])
assert b"yes" in os.read(fd, 100); assert os.waitpid(pid, 0)[1] == 0'
