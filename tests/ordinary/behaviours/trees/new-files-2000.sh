# why: generators and unpacked packages write thousands of files
# source: https://docs.npmjs.com/cli/v10/commands/npm-ci
# project: large
# after: test "$(find made -type f | wc -l)" = 2000
mkdir made
seq 2000 | (cd made && xargs touch)
rm -rf tree
