# why: D-Bus, X servers and test tools use sockets without a file
# source: https://man7.org/linux/man-pages/man7/unix.7.html
# needs: python3
python3 -c 'import socket
s = socket.socket(socket.AF_UNIX); s.bind("\0ordinary"); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect("\0ordinary")'
