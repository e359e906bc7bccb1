# why: servers listen on 0.0.0.0, and clients use 127.0.0.2
# source: https://man7.org/linux/man-pages/man7/ip.7.html
# needs: python3
python3 -c 'import socket
s = socket.create_server(("0.0.0.0", 0)); socket.create_connection(("127.0.0.2", s.getsockname()[1]))'
