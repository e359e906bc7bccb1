# why: PostgreSQL and fakeroot use shared memory of System V
# source: https://www.postgresql.org/docs/current/kernel-resources.html
# needs: python3
python3 -c 'import ctypes
c = ctypes.CDLL(None); i = c.shmget(0, 65536, 0o1600); assert i >= 0
c.shmat.restype = ctypes.c_void_p; assert c.shmat(i, None, 0) not in (None, 2**64 - 1)
s = c.semget(0, 1, 0o1600); assert s >= 0 and c.shmctl(i, 0, None) == 0 and c.semctl(s, 0, 0) == 0'
