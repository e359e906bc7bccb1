# why: nearly every program makes temporary files, and some start them
# source: https://github.com/anthropics/claude-code/issues/30433
test -d "$TMPDIR"
d=$(mktemp -d)
printf '#!/bin/sh\necho ran\n' > "$d/x"
chmod +x "$d/x"
test "$("$d/x")" = ran
