# why: interactive shells stop and continue jobs
# source: https://www.gnu.org/software/bash/manual/html_node/Job-Control-Basics.html
# needs: script bash
cat > "$TMPDIR/jobs" <<'X'
set -m
sleep 30 &
kill -STOP %1; sleep 0.2; jobs -s | grep -q Stopped || exit 1
kill %1; kill -CONT %1; wait %1; test $? -eq 143
X
script -qec "bash $TMPDIR/jobs" /dev/null < /dev/null
