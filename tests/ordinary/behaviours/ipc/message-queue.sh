# why: real-time and embedded programs use queues of POSIX
# source: https://man7.org/linux/man-pages/man7/mq_overview.7.html
# needs: cc
printf '%s\n' '#include <mqueue.h>' '#include <fcntl.h>' '#include <stdio.h>' 'int main(void) {' \
  'mqd_t q = mq_open("/ordinary", O_CREAT | O_RDWR, 0600, NULL); char b[8192]; unsigned p;' \
  'if (q < 0) { perror("mq_open"); return 1; }' \
  'return mq_send(q, "x", 1, 0) < 0 || mq_receive(q, b, sizeof b, &p) != 1 || mq_unlink("/ordinary"); }' > "$TMPDIR/q.c"
cc "$TMPDIR/q.c" -o "$TMPDIR/q" -lrt
"$TMPDIR/q"
