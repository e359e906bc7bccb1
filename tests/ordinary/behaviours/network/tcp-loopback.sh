# why: nearly every test of a server listens on 127.0.0.1 with a port of the system's choice
# source: https://github.com/openai/codex/issues/35768
# needs: python3
python3 -c 'import socket
s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); a, _ = s.accept()
c.sendall(b"x"); assert a.recv(1) == b"x"'
