# why: servers leave their socket behind (mysqld.sock, .s.PGSQL.5432, tmux, puma)
# source: https://man7.org/linux/man-pages/man7/unix.7.html
# needs: python3
# after: grep -qx kept other.txt
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("server.sock")'
echo kept > other.txt
