# why: test suites connect to `localhost`
# source: https://man7.org/linux/man-pages/man5/hosts.5.html
# needs: python3 getent
getent hosts localhost > /dev/null
python3 -c 'import socket
s = socket.create_server(("localhost", 0)); socket.create_connection(("localhost", s.getsockname()[1]))'
