# why: package managers and build tools lock their folders
# source: https://man7.org/linux/man-pages/man1/flock.1.html
# needs: flock
mkdir -p build
flock build/lock sh -c '! flock -n build/lock true'
