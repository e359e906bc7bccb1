# why: tests of services start a PostgreSQL of their own
# source: https://www.postgresql.org/docs/current/app-initdb.html
# needs: initdb pg_ctl psql
initdb -D "$TMPDIR/data" -A trust -U tester -N > "$TMPDIR/log"
pg_ctl -D "$TMPDIR/data" -w -l "$TMPDIR/server" -o "-k $TMPDIR -p 5433 -h 127.0.0.1" start > "$TMPDIR/log"
test "$(psql -h 127.0.0.1 -p 5433 -U tester -Atc 'select 6 * 7' postgres)" = 42
test "$(psql -h "$TMPDIR" -p 5433 -U tester -Atc 'select 6 * 7' postgres)" = 42
pg_ctl -D "$TMPDIR/data" -m fast stop > "$TMPDIR/log"
