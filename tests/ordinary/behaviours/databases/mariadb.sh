# why: tests of services start a MariaDB of their own
# source: https://mariadb.com/kb/en/mariadb-install-db/
# needs: mariadb-install-db mariadbd mariadb
mariadb-install-db --no-defaults --datadir="$TMPDIR/data" --auth-root-authentication-method=normal > "$TMPDIR/log"
mariadbd --no-defaults --datadir="$TMPDIR/data" --socket="$TMPDIR/s" --skip-networking --user="$(id -un)" 2> "$TMPDIR/server" &
n=0; until mariadb --no-defaults -u root -S "$TMPDIR/s" -e 'select 1' > "$TMPDIR/log" 2>&1; do sleep 0.2; n=$((n + 1)); test $n -lt 100; done
kill $!
wait
