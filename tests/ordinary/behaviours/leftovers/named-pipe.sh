# why: test tools and editors leave a pipe behind
# source: https://man7.org/linux/man-pages/man3/mkfifo.3.html
# after: grep -qx kept other.txt
mkfifo .control
echo kept > other.txt
