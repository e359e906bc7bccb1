# why: nested packages make long paths
# source: https://man7.org/linux/man-pages/man7/path_resolution.7.html
# project: large
p=deep
for i in $(seq 60); do p="$p/folder-with-a-name-$i"; done
mkdir -p "$p"
echo x > "$p/file"
test "$(find deep -name file | wc -l)" = 1
test "$(stat -c %s large.bin)" = 20000000
