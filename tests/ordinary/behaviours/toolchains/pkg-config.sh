# why: configure scripts ask pkg-config for libraries of the system
# source: https://people.freedesktop.org/~dbn/pkg-config-guide.html
# needs: pkg-config
pkg-config --list-all > "$TMPDIR/all"
printf 'Name: own\nDescription: own\nVersion: 1.2\nLibs: -lown\n' > "$TMPDIR/own.pc"
test "$(PKG_CONFIG_PATH=$TMPDIR pkg-config --modversion own)" = 1.2
