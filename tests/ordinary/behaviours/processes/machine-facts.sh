# why: runtimes choose the size of pools by processors and memory
# source: https://man7.org/linux/man-pages/man5/proc_meminfo.5.html
test "$(nproc)" -ge 1
grep -q '^MemTotal' /proc/meminfo
grep -q '^processor' /proc/cpuinfo
grep -q . /proc/loadavg
grep -q Linux /proc/version
