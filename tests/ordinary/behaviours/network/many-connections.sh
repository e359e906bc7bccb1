# why: tests of servers open hundreds of connections
# source: https://man7.org/linux/man-pages/man2/listen.2.html
# needs: python3
python3 -c 'import socket
s = socket.create_server(("127.0.0.1", 0), backlog=256)
cs = [socket.create_connection(s.getsockname()) for _ in range(200)]
assert len([s.accept() for _ in cs]) == 200'
