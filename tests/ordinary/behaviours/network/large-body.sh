# why: tests upload and download megabytes over the loopback
# source: https://man7.org/linux/man-pages/man7/tcp.7.html
# needs: python3
python3 -c 'import socket, threading
s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); a, _ = s.accept()
def send(): c.sendall(bytes(50_000_000)); c.close()
threading.Thread(target=send).start(); n = 0
while b := a.recv(1 << 16): n += len(b)
assert n == 50_000_000'
