# why: tests of clients make a certificate and a TLS server
# source: https://docs.python.org/3/library/ssl.html
# needs: python3 openssl
cd "$TMPDIR"
openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c -days 1 -subj /CN=localhost -addext subjectAltName=DNS:localhost 2> log
python3 -c 'import socket, ssl, threading
x = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); x.load_cert_chain("c", "k"); s = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=lambda: x.wrap_socket(s.accept()[0], server_side=True).send(b"x")).start()
y = ssl.create_default_context(cafile="c")
assert y.wrap_socket(socket.create_connection(s.getsockname()), server_hostname="localhost").recv(1) == b"x"'
