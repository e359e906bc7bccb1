# why: installers build in TMPDIR and move the result into the project
# source: https://man7.org/linux/man-pages/man1/mv.1.html
mkdir "$TMPDIR/made"
echo x > "$TMPDIR/made/file"
mv "$TMPDIR/made" made
test -f made/file
