# why: a second step must not build again what the first one built
# source: https://www.gnu.org/software/make/manual/html_node/Rule-Example.html
# needs: make cc
mkdir -p build
printf 'build/hello.o: src/lib/twice.c\n\tcc -c $< -o $@\n' > rules.mk
make -s -f rules.mk
# stage
make -q -f rules.mk
