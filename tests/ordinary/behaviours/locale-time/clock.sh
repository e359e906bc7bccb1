# why: builds, certificates and caches need the true time, and sleep must take as long as it says
# source: https://man7.org/linux/man-pages/man2/clock_gettime.2.html
# needs: python3
touch now.txt
test "$(date +%Y)" -ge 2024
python3 -c 'import os, time
assert abs(os.stat("now.txt").st_mtime - time.time()) < 5
t = time.monotonic(); time.sleep(0.2); assert 0.19 < time.monotonic() - t < 5'
