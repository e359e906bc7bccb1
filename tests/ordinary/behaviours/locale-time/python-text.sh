# why: programs in Python read and print text without a word about its encoding
# source: https://docs.python.org/3/library/os.html#python-utf-8-mode
# needs: python3
python3 -c 'import sys; assert sys.stdout.encoding.lower() == "utf-8" and sys.getfilesystemencoding() == "utf-8"
open("caf\u00e9.txt", "w").write("\u2713"); print("\u2713")'
test -f "$(printf 'caf\303\251.txt')"
