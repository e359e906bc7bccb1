# why: servers end on TERM and clean up
# source: https://man7.org/linux/man-pages/man7/signal.7.html
sh -c 'trap "echo ended > $TMPDIR/t; exit 0" TERM; while :; do sleep 0.05; done' & pid=$!
sleep 0.3
kill "$pid"
wait "$pid"
grep -qx ended "$TMPDIR/t"
