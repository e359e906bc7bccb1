# why: web servers and Wayland pass open files between processes
# source: https://man7.org/linux/man-pages/man3/cmsg.3.html
# needs: python3
python3 -c 'import os, socket
a, b = socket.socketpair(); r, w = os.pipe()
socket.send_fds(a, [b"x"], [w]); _, fds, _, _ = socket.recv_fds(b, 1, 1)
os.write(fds[0], b"y"); assert os.read(r, 1) == b"y"'
