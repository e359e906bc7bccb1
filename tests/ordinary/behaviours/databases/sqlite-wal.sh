# why: tests and tools keep data in SQLite, with a write-ahead log in shared memory
# source: https://www.sqlite.org/wal.html
# needs: python3
mkdir -p build
python3 -c 'import sqlite3
a = sqlite3.connect("build/a.db"); assert a.execute("pragma journal_mode=wal").fetchone() == ("wal",)
a.execute("create table t (x)"); a.execute("insert into t values (42)"); a.commit()
assert sqlite3.connect("build/a.db").execute("select x from t").fetchone() == (42,)'
