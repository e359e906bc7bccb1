# why: gpg, ssh-agent and key stores keep secrets out of swap
# source: https://man7.org/linux/man-pages/man2/mlock.2.html
# needs: python3
python3 -c 'import ctypes, mmap
m = mmap.mmap(-1, 16384); c = ctypes.CDLL(None, use_errno=True)
a = ctypes.addressof(ctypes.c_char.from_buffer(m))
assert c.mlock(ctypes.c_void_p(a), ctypes.c_size_t(16384)) == 0, ctypes.get_errno()'
