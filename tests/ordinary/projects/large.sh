# A tree with many files and one large file.
git init -q -b main project
cd project
git config user.name 'Ada Lovelace'
git config user.email ada@example.org
cp -r "$PROGRAMS" .ordinary
i=0
while [ "$i" -lt 40 ]; do
  mkdir -p "tree/$i"
  for j in 0 1 2 3 4 5 6 7 8 9 a b c d e f g h i j; do echo "$i $j" > "tree/$i/$j.txt"; done
  i=$((i + 1))
done
head -c 20000000 /dev/zero > large.bin
git add -A
git commit -q -m first
