# why: most builds compile and link a C program
# source: https://gcc.gnu.org/onlinedocs/gcc/Overall-Options.html
# needs: cc
printf '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n' > hello.c
mkdir -p build
cc -O1 -Wall -o build/hello hello.c
test "$(./build/hello)" = hello
