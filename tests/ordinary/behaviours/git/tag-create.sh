# why: release tools (npm version, cargo-release) tag a version
# source: https://docs.npmjs.com/cli/v10/commands/npm-version
# needs: git
git tag -a v1.1 -m 'version 1.1'
test "$(git describe)" = v1.0 || test "$(git describe)" = v1.1
git tag | grep -qx v1.1
