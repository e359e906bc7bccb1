# why: test tools make a picture of a page with Firefox
# source: https://firefox-source-docs.mozilla.org/testing/geckodriver/index.html
# needs: firefox
echo '<p>hello</p>' > "$TMPDIR/page.html"
firefox --headless --profile "$TMPDIR/profile" --screenshot "$TMPDIR/shot.png" "file://$TMPDIR/page.html"
test -s "$TMPDIR/shot.png"
