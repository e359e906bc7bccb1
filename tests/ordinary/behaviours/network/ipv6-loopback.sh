# why: node and Go servers listen on `::1` or on all addresses
# source: https://nodejs.org/api/net.html#serverlisten
# needs: python3
python3 -c 'import socket
s = socket.create_server(("::1", 0), family=socket.AF_INET6); socket.create_connection(s.getsockname()[:2])
d = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
socket.create_connection(("127.0.0.1", d.getsockname()[1]))'
