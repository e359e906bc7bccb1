# why: tests of DNS, statsd and QUIC programs use UDP
# source: https://man7.org/linux/man-pages/man7/udp.7.html
# needs: python3
python3 -c 'import socket
s = socket.socket(type=socket.SOCK_DGRAM); s.bind(("127.0.0.1", 0)); s.settimeout(5)
socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", s.getsockname()); assert s.recv(1) == b"x"'
