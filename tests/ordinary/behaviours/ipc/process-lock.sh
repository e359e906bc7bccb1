# why: test runners in Python share a lock between processes
# source: https://github.com/openai/codex/pull/2317
# needs: python3
python3 -c 'import multiprocessing as m
def work(lock, n):
    with lock: n.value += 1
if __name__ == "__main__":
    m.set_start_method("fork"); lock = m.Lock(); n = m.Value("i", 0)
    ps = [m.Process(target=work, args=(lock, n)) for _ in range(4)]
    [p.start() for p in ps]; [p.join() for p in ps]; assert n.value == 4'
