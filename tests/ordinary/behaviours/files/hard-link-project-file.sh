# why: test tools and build systems link sources into a build folder
# source: https://man7.org/linux/man-pages/man2/link.2.html
mkdir -p build
ln README.md build/README.md
cmp README.md build/README.md
