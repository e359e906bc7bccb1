# why: commands read an empty input and do not wait for a person
# source: https://docs.github.com/en/actions/reference/runners/github-hosted-runners
test -z "$(timeout 5 cat)"
code=0; read -r answer || code=$?
test "$code" = 1
