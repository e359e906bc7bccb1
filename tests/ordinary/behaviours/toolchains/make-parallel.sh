# why: builds run make with several jobs, which talk through a pipe
# source: https://www.gnu.org/software/make/manual/html_node/Parallel.html
# needs: make
mkdir -p build
printf 'all: build/a build/b build/c\nbuild/%%:\n\t@sleep 0.1; echo $@ > $@\nversion:\n\t@$(MAKE) -f build/M all\n' > build/M
make -s -j4 -f build/M version
test -s build/c
