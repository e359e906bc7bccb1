# why: programs with event loops (asyncio, tokio, libuv) use epoll
# source: https://docs.python.org/3/library/asyncio-stream.html
# needs: python3
python3 -c 'import asyncio
async def handle(r, w): w.write(await r.readline()); await w.drain(); w.close()
async def main():
    s = await asyncio.start_server(handle, "127.0.0.1", 0)
    r, w = await asyncio.open_connection(*s.sockets[0].getsockname()); w.write(b"x\n"); assert await r.readline() == b"x\n"
asyncio.run(main())'
