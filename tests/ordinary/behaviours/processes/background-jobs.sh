# why: scripts start work in the background and wait for it
# source: https://pubs.opengroup.org/onlinepubs/9699919799/utilities/wait.html
(sleep 0.2; exit 3) & a=$!
(sleep 0.1) & b=$!
wait "$b"
code=0; wait "$a" || code=$?
test "$code" = 3
