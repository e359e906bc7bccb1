# why: programs look up their user, well-known ports and the system's release
# source: https://man7.org/linux/man-pages/man5/nsswitch.conf.5.html
# needs: getent
getent passwd "$(id -u)" > /dev/null
whoami > /dev/null
id -gn > /dev/null
grep -q '^ID=' /etc/os-release
