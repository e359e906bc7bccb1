# why: tests leave files whose names are not text
# source: https://man7.org/linux/man-pages/man7/path_resolution.7.html
# after: grep -qx kept other.txt
echo x > "$(printf 'left\377over')"
echo kept > other.txt
