# why: build tools start a daemon and talk to it in the same step
# source: https://man7.org/linux/man-pages/man7/daemon.7.html
# needs: setsid
mkfifo "$TMPDIR/in"
setsid sh -c '(read -r x < "$TMPDIR/in"; echo "got $x" > "$TMPDIR/out") > /dev/null 2>&1 &'
echo word > "$TMPDIR/in"
n=0; until [ -s "$TMPDIR/out" ] || [ $n -gt 50 ]; do sleep 0.1; n=$((n + 1)); done
grep -qx 'got word' "$TMPDIR/out"
