#!/bin/sh
# Ends with 0 if greet.sh greets the person in the argument.
test "$(sh greet.sh "$1")" = "Hello, $1!"
