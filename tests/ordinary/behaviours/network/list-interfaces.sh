# why: node, Java and service discovery list the network interfaces
# source: https://man7.org/linux/man-pages/man3/getifaddrs.3.html
# needs: cc
printf '%s\n' '#include <ifaddrs.h>' '#include <net/if.h>' '#include <stdio.h>' 'int main(void) { struct ifaddrs *a;' \
  'if (getifaddrs(&a)) { perror("getifaddrs"); return 1; }' \
  'for (; a; a = a->ifa_next) if (a->ifa_flags & IFF_LOOPBACK && a->ifa_flags & IFF_UP) return 0;' \
  'return 2; }' > "$TMPDIR/i.c"
cc "$TMPDIR/i.c" -o "$TMPDIR/i"
"$TMPDIR/i"
