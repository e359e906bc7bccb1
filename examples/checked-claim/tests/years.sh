#!/bin/sh
# Ends with 0 if leap.sh is right about every year here.
failed=0
expect() {
    answer=no
    sh leap.sh "$1" && answer=yes
    if [ "$answer" != "$2" ]; then
        echo "$1: expected $2, got $answer"
        failed=1
    fi
}
expect 2024 yes
expect 2023 no
expect 1900 no
expect 2000 yes
exit $failed
