# why: test runners and bundlers in watch mode wait for changes of a file
# source: https://man7.org/linux/man-pages/man7/inotify.7.html
# needs: python3
python3 -c 'import ctypes, os, select
c = ctypes.CDLL(None, use_errno=True); fd = c.inotify_init1(0)
assert fd >= 0 and c.inotify_add_watch(fd, b"src", 0x102) >= 0, os.strerror(ctypes.get_errno())
open("src/watched.txt", "w").write("x")
assert select.select([fd], [], [], 5)[0]'
