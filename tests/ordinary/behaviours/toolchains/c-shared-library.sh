# why: builds link a library of the project and load it at run time
# source: https://man7.org/linux/man-pages/man8/ld.so.8.html
# needs: cc ar
mkdir -p build
cc -shared -fPIC -o build/libtwice.so src/lib/twice.c
printf 'int twice(int); int main(void) { return twice(21) != 42; }\n' > build/main.c
cc build/main.c -Lbuild -ltwice -Wl,-rpath,"$PWD/build" -o build/main
./build/main
cc -c src/lib/twice.c -o build/twice.o
ar rcs build/libtwice.a build/twice.o
cc -static build/main.c build/libtwice.a -o build/static
./build/static
