# why: tests of calendars set TZ, and libraries read the table of time zones
# source: https://man7.org/linux/man-pages/man5/tzfile.5.html
# needs: python3
test "$(TZ=America/New_York date -d @0 +%H)" = 19
test "$(TZ=Asia/Kolkata date -d @0 +%H:%M)" = 05:30
TZ=Europe/Berlin python3 -c 'import time; assert time.tzname == ("CET", "CEST")'
