# why: LMDB, disk images and test fixtures make a sparse file larger than memory
# source: http://www.lmdb.tech/doc/group__mdb.html
mkdir -p build
truncate -s 8G build/image
test "$(stat -c %s build/image)" = 8589934592
rm build/image
