# why: continuous integration checks out a tag, and version tools ask for it
# source: https://git-scm.com/docs/git-checkout#_detached_head
# needs: git
# project: detached
! git symbolic-ref -q HEAD
test "$(git describe --exact-match)" = v2.1
