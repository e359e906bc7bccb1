# why: C and C++ projects build with CMake and test with ctest
# source: https://cmake.org/cmake/help/latest/manual/ctest.1.html
# needs: cmake ctest cc
printf 'cmake_minimum_required(VERSION 3.10)\nproject(p C)\nenable_testing()\nadd_executable(t build/t.c)\nadd_test(NAME t COMMAND t)\n' > CMakeLists.txt
mkdir -p build
printf 'int main(void) { return 0; }\n' > build/t.c
cmake -S . -B build/cmake > "$TMPDIR/log"
cmake --build build/cmake > "$TMPDIR/log"
ctest --test-dir build/cmake --output-on-failure
