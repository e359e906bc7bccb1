# why: builds begin with `rm -rf` of an output folder, also of a tracked one
# source: https://man7.org/linux/man-pages/man1/rm.1.html
# after: test ! -e data
rm -rf build data
test ! -e data
mkdir build
