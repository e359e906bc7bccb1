# why: link checkers, release tools and remark ask where the project comes from
# source: https://git-scm.com/docs/git-remote
# needs: git
test "$(git remote get-url origin)" = https://example.org/team/project.git
