# why: coverage tools write files beside the objects when a program ends
# source: https://gcc.gnu.org/onlinedocs/gcc/Gcov.html
# needs: cc gcov
mkdir -p build
cp src/lib/twice.c build/t.c
printf 'int main(void) { return twice(0); }\n' >> build/t.c
cd build
cc --coverage t.c -o t
./t
ls ./*.gcda > list
gcov -b ./*.gcda | grep -q 'Lines executed:100'
