# why: programs in Python use compiled modules of the standard library
# source: https://docs.python.org/3/library/index.html
# needs: python3
python3 -c 'import bz2, ctypes, curses, decimal, hashlib, lzma, readline, sqlite3, ssl, zlib, zoneinfo, venv, _posixshmem
assert ctypes.CDLL(None).getpid() > 0 and hashlib.sha256(b"").hexdigest().startswith("e3b0")'
