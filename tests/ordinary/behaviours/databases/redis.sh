# why: tests of services start a Redis of their own
# source: https://redis.io/docs/latest/operate/oss_and_stack/management/config/
# needs: redis-server redis-cli
redis-server --port 6380 --save '' --dir "$TMPDIR" > "$TMPDIR/log" &
n=0; until redis-cli -p 6380 ping > "$TMPDIR/ping" 2>&1; do sleep 0.1; n=$((n + 1)); test $n -lt 100; done
redis-cli -p 6380 set key value
test "$(redis-cli -p 6380 get key)" = value
redis-cli -p 6380 shutdown nosave
