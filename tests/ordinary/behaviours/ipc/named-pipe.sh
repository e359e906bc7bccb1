# why: scripts and test tools join two programs by a named pipe
# source: https://man7.org/linux/man-pages/man7/fifo.7.html
mkfifo "$TMPDIR/pipe"
(echo word > "$TMPDIR/pipe") &
read -r word < "$TMPDIR/pipe"
test "$word" = word
