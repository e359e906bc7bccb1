# why: runtimes read their own maps, limits and program file
# source: https://man7.org/linux/man-pages/man5/proc.5.html
test -e /proc/self/exe
grep -q '\[stack\]' /proc/self/maps
grep -q 'Max open files' /proc/self/limits
tr '\0' '\n' < /proc/$$/cmdline | grep -q sh
