# why: shells and compilers write to /tmp itself, whatever TMPDIR says
# source: https://github.com/anthropics/claude-code/issues/25990
# needs: bash
touch /tmp/ordinary.$$
rm /tmp/ordinary.$$
bash -c 'cat <<X
$(echo here)
X' | grep -qx here
