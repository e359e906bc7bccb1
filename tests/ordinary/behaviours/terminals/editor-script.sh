# why: scripts edit files with vi, and git starts an editor
# source: https://vimhelp.org/starting.txt.html#-es
# needs: vim
vim -N -u NONE -es -c '%s/one/uno/' -c wq notes.md
grep -qx uno notes.md
