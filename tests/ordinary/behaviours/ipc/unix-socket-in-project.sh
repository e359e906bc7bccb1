# why: development servers put their socket in the project while they run
# source: https://github.com/anthropics/claude-code/issues/41817
# needs: python3
python3 -c 'import os, socket
s = socket.socket(socket.AF_UNIX); s.bind("server.sock"); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect("server.sock"); os.remove("server.sock")'
