# why: scripts are made executable and started
# source: https://man7.org/linux/man-pages/man1/chmod.1.html
# after: test -x bin/new.sh
printf '#!/bin/sh\necho new\n' > bin/new.sh
chmod +x bin/new.sh
test "$(./bin/new.sh)" = new
