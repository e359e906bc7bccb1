# why: databases, node and Go read settings of the kernel below /proc/sys
# source: https://docs.kernel.org/admin-guide/sysctl/index.html
test "$(cat /proc/sys/kernel/pid_max)" -gt 100
grep -q . /proc/sys/net/core/somaxconn
grep -q . /proc/sys/vm/overcommit_memory
