# why: sanitizers, Go, V8 and JVMs reserve address space that they never touch
# source: https://clang.llvm.org/docs/AddressSanitizer.html#limitations
# needs: python3
python3 -c 'import mmap; mmap.mmap(-1, 64 << 30, flags=0x4022)'
