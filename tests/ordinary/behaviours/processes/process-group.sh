# why: test runners kill a server with everything that it started
# source: https://man7.org/linux/man-pages/man2/kill.2.html
# needs: setsid
setsid sh -c 'echo $$ > "$TMPDIR/pid"; sleep 60 & sleep 60 & wait' &
while [ ! -s "$TMPDIR/pid" ]; do sleep 0.05; done
kill -TERM "-$(cat "$TMPDIR/pid")"
wait
