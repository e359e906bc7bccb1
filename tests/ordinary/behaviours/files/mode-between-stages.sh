# why: one step makes a key with mode 600, the next one uses it
# source: https://man7.org/linux/man-pages/man1/ssh-keygen.1.html
# needs: ssh-keygen
mkdir -p build
ssh-keygen -q -t ed25519 -N '' -f build/id
# stage
ssh-keygen -y -f build/id > "$TMPDIR/public"
cut -d' ' -f1,2 build/id.pub > "$TMPDIR/expected"
cut -d' ' -f1,2 "$TMPDIR/public" | cmp - "$TMPDIR/expected"
