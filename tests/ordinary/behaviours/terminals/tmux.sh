# why: agents and tests drive programs in a session of tmux
# source: https://man7.org/linux/man-pages/man1/tmux.1.html
# needs: tmux
export TERM=screen
tmux -S "$TMPDIR/t" new-session -d -x 80 -y 24 'sh'
tmux -S "$TMPDIR/t" send-keys 'echo $((6 * 7))' Enter
n=0; until tmux -S "$TMPDIR/t" capture-pane -p | grep -q '42$'; do sleep 0.2; n=$((n + 1)); test $n -lt 50; done
tmux -S "$TMPDIR/t" kill-server
