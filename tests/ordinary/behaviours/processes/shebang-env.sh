# why: most scripts begin with `#!/usr/bin/env`
# source: https://man7.org/linux/man-pages/man1/env.1.html
# needs: env bash
printf '#!/usr/bin/env bash\necho "${BASH_VERSION:+bash}"\n' > "$TMPDIR/s"
chmod +x "$TMPDIR/s"
test "$("$TMPDIR/s")" = bash
test "$(env -i /bin/echo clean)" = clean
