# why: tests and `ss`, `lsof` find the process that holds a port
# source: https://man7.org/linux/man-pages/man5/proc_pid_net.5.html
# needs: python3
python3 -c 'import socket
s = socket.create_server(("127.0.0.1", 0)); port = "%04X" % s.getsockname()[1]
assert any(":" + port in line for line in open("/proc/net/tcp"))'
