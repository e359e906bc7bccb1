# why: version tools (setuptools-scm, vergen, GoReleaser) ask for the tag of HEAD
# source: https://git-scm.com/docs/git-describe
# needs: git
test "$(git describe --tags)" = v1.0
