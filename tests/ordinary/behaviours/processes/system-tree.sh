# why: allocators, JVMs and hwloc read processors and limits below /sys
# source: https://www.kernel.org/doc/html/latest/admin-guide/cputopology.html
test -r /sys/devices/system/cpu/online
test -d /sys/devices/system/cpu/cpu0
