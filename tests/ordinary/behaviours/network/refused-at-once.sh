# why: scripts wait for a server by connecting until it listens
# source: https://man7.org/linux/man-pages/man2/connect.2.html
# needs: python3
timeout 5 python3 -c 'import socket
try: socket.create_connection(("127.0.0.1", 9)); raise SystemExit(1)
except ConnectionRefusedError: pass'
