# why: programs look up what a terminal can do
# source: https://man7.org/linux/man-pages/man5/terminfo.5.html
# needs: tput
test "$(TERM=xterm tput cols)" -gt 0
test "$(TERM=vt100 tput colors)" -le 8
TERM=xterm tput bold | grep -q .
