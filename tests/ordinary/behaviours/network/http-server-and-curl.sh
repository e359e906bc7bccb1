# why: agents start a development server and look at it with curl
# source: https://github.com/anthropic-experimental/sandbox-runtime/issues/165
# needs: python3 curl
python3 -m http.server 8000 --bind 127.0.0.1 > /dev/null 2>&1 & server=$!
n=0; until curl -sf -o "$TMPDIR/page" http://127.0.0.1:8000/README.md; do sleep 0.2; n=$((n + 1)); test $n -lt 50; done
cmp README.md "$TMPDIR/page"
kill "$server"
