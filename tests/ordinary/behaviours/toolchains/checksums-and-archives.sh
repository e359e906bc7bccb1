# why: packagers compress, sign and compare
# source: https://man7.org/linux/man-pages/man1/sha256sum.1.html
# needs: sha256sum xz zip unzip openssl
sha256sum README.md > "$TMPDIR/sums"
sha256sum -c --quiet "$TMPDIR/sums"
xz -k -c README.md | xz -dc | cmp - README.md
zip -qr "$TMPDIR/a.zip" src
unzip -qt "$TMPDIR/a.zip"
openssl dgst -sha256 README.md > "$TMPDIR/digest"
