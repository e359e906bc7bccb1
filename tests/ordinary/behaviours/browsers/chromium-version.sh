# why: test tools ask the browser for its version; Debian's is a script that reads /etc/chromium.d
# source: https://sources.debian.org/src/chromium/latest/debian/scripts/chromium/
# needs: chromium
chromium --version --no-sandbox
