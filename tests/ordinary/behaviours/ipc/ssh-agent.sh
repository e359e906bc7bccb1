# why: tests and deployments put a key for tests into an agent
# source: https://man7.org/linux/man-pages/man1/ssh-agent.1.html
# needs: ssh-agent ssh-add ssh-keygen
eval "$(ssh-agent -s)" > /dev/null
ssh-keygen -q -t ed25519 -N '' -f "$TMPDIR/id"
ssh-add -q "$TMPDIR/id"
ssh-add -l | grep -q ED25519
ssh-agent -k > /dev/null
