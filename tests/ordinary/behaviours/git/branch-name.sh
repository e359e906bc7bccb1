# why: prompts, release scripts and CI steps decide by the name of the branch
# source: https://git-scm.com/docs/git-branch
# needs: git
test "$(git branch --show-current)" = work
test "$(git rev-parse --abbrev-ref HEAD)" = work
