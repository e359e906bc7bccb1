# why: builds convert old files with iconv
# source: https://man7.org/linux/man-pages/man1/iconv.1.html
# needs: iconv
iconv -f LATIN1 -t UTF-8 data/latin1.txt | grep -qx "$(printf 'caf\303\251')"
