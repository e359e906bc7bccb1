# why: release tools sign with a key for tests, through gpg-agent
# source: https://www.gnupg.org/documentation/manuals/gnupg/Unattended-GPG-key-generation.html
# needs: gpg gpg-agent
export GNUPGHOME="$TMPDIR/g"
mkdir -m 700 "$GNUPGHOME"
gpg --batch --quiet --passphrase '' --quick-generate-key 'Test <test@example.org>' ed25519 sign never
gpg --batch --quiet --armor --detach-sign -o "$TMPDIR/sig" README.md
gpg --batch --quiet --verify "$TMPDIR/sig" README.md
gpgconf --kill all
