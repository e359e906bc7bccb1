# why: programs whose parent has ended must not stay as zombies
# source: https://man7.org/linux/man-pages/man2/waitpid.2.html
# needs: ps
sh -c 'sh -c "echo \$\$ > $TMPDIR/pid; sleep 0.1" & exit 0'
sleep 1
! ps -p "$(cat "$TMPDIR/pid")" > /dev/null
