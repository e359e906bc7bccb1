# why: SQLite and mail programs lock ranges of a file
# source: https://www.sqlite.org/lockingv3.html
# needs: python3
python3 -c 'import fcntl, os
f = open("notes.md", "r+"); fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
pid = os.fork()
if pid == 0:
    try: fcntl.lockf(open("notes.md", "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB); os._exit(1)
    except OSError: os._exit(0)
assert os.waitpid(pid, 0)[1] == 0'
