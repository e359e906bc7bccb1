# why: tools in Python spread work over processors
# source: https://docs.python.org/3/library/concurrent.futures.html#processpoolexecutor
# needs: python3
cat > "$TMPDIR/pool.py" <<'X'
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
if __name__ == "__main__":
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(abs, [-1, -2, -3])) == [1, 2, 3]
X
python3 "$TMPDIR/pool.py"
