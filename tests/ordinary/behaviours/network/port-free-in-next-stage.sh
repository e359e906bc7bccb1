# why: a server that a step left behind must not block the port of the next step
# source: https://github.com/anthropic-experimental/sandbox-runtime/issues/165
# needs: python3
python3 -c 'import socket, time
s = socket.create_server(("127.0.0.1", 8123)); time.sleep(60)' > /dev/null 2>&1 &
sleep 0.5
# stage
python3 -c 'import socket; socket.create_server(("127.0.0.1", 8123))'
