# why: test tools (Playwright, Puppeteer) load a page without a window
# source: https://playwright.dev/docs/browsers
# needs: chromium
echo '<p id=x>hello</p>' > "$TMPDIR/page.html"
chromium --headless --no-sandbox --disable-gpu --user-data-dir="$TMPDIR/profile" --dump-dom "file://$TMPDIR/page.html" > "$TMPDIR/dom"
grep -q hello "$TMPDIR/dom"
