# why: tests of archivers and file servers set attributes of the user
# source: https://man7.org/linux/man-pages/man7/xattr.7.html
# needs: python3
python3 -c 'import os
open("attr.txt", "w").close()
os.setxattr("attr.txt", "user.test", b"value")
assert os.getxattr("attr.txt", "user.test") == b"value"
os.remove("attr.txt")'
