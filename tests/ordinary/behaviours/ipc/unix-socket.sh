# why: tsx, Docker clients, databases and language servers listen on a Unix socket in TMPDIR
# source: https://github.com/anthropics/claude-code/issues/50165
# needs: python3
python3 -c 'import os, socket
p = os.path.join(os.environ["TMPDIR"], "s"); s = socket.socket(socket.AF_UNIX); s.bind(p); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect(p); a, _ = s.accept(); c.sendall(b"x")
assert a.recv(1) == b"x"
d = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); d.bind(p + "d")'
