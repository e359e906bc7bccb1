# why: scripts look for their servers with ps and pgrep
# source: https://man7.org/linux/man-pages/man1/pgrep.1.html
# needs: ps pgrep
sleep 4.321 &
sleep 0.2
pgrep -f 'sleep 4.321' | grep -qx "$!"
ps -p "$!" -o args= | grep -q 'sleep 4.321'
