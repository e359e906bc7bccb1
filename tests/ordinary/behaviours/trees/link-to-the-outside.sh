# why: projects have links to a folder beside them
# source: https://git-scm.com/docs/git-config#Documentation/git-config.txt-coresymlinks
# project: odd
test "$(readlink shared)" = ../shared
test "$(readlink dangling)" = absent
test "$(readlink loop)" = loop
