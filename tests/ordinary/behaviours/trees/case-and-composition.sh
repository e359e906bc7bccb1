# why: names that differ in case or in the form of an accent are different files
# source: https://git-scm.com/docs/git-config#Documentation/git-config.txt-coreprecomposeUnicode
# project: odd
test "$(cat case.txt Case.txt | tr '\n' ' ')" = 'lower upper '
test -f "$(printf 'd\303\251j\303\240')"
test -f "$(printf 'de\314\201ja')"
