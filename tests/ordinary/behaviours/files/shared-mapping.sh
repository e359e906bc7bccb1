# why: databases, linkers and search indexes write files through a mapping
# source: https://man7.org/linux/man-pages/man2/mmap.2.html
# needs: python3
head -c 8192 /dev/zero > mapped.bin
python3 -c 'import mmap
with open("mapped.bin", "r+b") as f:
    m = mmap.mmap(f.fileno(), 0); m[4096:4100] = b"page"; m.flush()
assert open("mapped.bin", "rb").read()[4096:4100] == b"page"'
rm mapped.bin
