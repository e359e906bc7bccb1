# why: builds compile translations with gettext
# source: https://www.gnu.org/software/gettext/manual/gettext.html
# needs: msgfmt
printf 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\nmsgid "yes"\nmsgstr "ja"\n' > "$TMPDIR/de.po"
msgfmt --check-format -o "$TMPDIR/de.mo" "$TMPDIR/de.po"
test -s "$TMPDIR/de.mo"
