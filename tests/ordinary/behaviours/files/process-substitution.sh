# why: scripts compare the output of two commands through /dev/fd
# source: https://www.gnu.org/software/bash/manual/html_node/Process-Substitution.html
# needs: bash
bash -c 'diff <(sort notes.md) <(sort < notes.md) && read -r l < <(echo line) && test "$l" = line'
