# why: development servers listen on port 3000 or 8080
# source: https://github.com/openai/codex/issues/31048
# needs: python3
python3 -c 'import socket
for port in 3000, 8080: socket.create_server(("127.0.0.1", port))'
