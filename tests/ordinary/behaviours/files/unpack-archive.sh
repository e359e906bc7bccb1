# why: builds unpack archives with modes, links and times
# source: https://man7.org/linux/man-pages/man1/tar.1.html
# needs: tar gzip
tar -czf "$TMPDIR/a.tgz" src bin data/key.pem
mkdir unpacked
tar -xzf "$TMPDIR/a.tgz" -C unpacked
test -x unpacked/bin/tool.sh
test -L unpacked/bin/app
test "$(stat -c %a unpacked/data/key.pem)" = "$(stat -c %a data/key.pem)"
