# why: programs expect a folder for logs that git does not keep
# source: https://archive.kernel.org/oldwiki/git.wiki.kernel.org/index.php/GitFaq.html
# project: odd
test -d empty
echo x > empty/file
