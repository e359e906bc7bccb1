# why: editors and formatters write beside a file and rename it over the old one
# source: https://man7.org/linux/man-pages/man2/rename.2.html
# after: test "$(wc -l < README.md)" -eq 5
cp README.md README.md.tmp
echo 'Third line.' >> README.md.tmp
mv README.md.tmp README.md
