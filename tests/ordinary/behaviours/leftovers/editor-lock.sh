# why: editors lock a file by a link that leads nowhere
# source: https://www.gnu.org/software/emacs/manual/html_node/emacs/Interlocking.html
# after: grep -qx kept other.txt
ln -s "ada@host.$$:1" .#notes.md
echo kept > other.txt
