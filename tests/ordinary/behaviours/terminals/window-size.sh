# why: programs lay out their screen by the size of the terminal
# source: https://man7.org/linux/man-pages/man2/TIOCSWINSZ.2const.html
# needs: script stty
script -qec 'stty rows 40 cols 100; stty size' /dev/null < /dev/null | grep -q '40 100'
