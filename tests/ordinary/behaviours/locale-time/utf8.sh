# why: text tools must know that the text is UTF-8
# source: https://man7.org/linux/man-pages/man7/locale.7.html
# needs: locale
test "$(locale charmap)" = UTF-8
test "$(printf 'd\303\251j\303\240' | wc -m)" = 4
