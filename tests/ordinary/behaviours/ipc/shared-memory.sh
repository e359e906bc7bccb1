# why: Python, PyTorch loaders and browsers share memory between processes
# source: https://docs.python.org/3/library/multiprocessing.shared_memory.html
# needs: python3
python3 -c 'from multiprocessing.shared_memory import SharedMemory
m = SharedMemory(create=True, size=1 << 20); m.buf[:1] = b"x"
n = SharedMemory(m.name); assert bytes(n.buf[:1]) == b"x"
n.close(); m.close(); m.unlink()'
