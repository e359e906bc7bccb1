# why: programs keep settings and caches below HOME
# source: https://specifications.freedesktop.org/basedir-spec/latest/
test -d "$HOME"
mkdir -p "$HOME/.config/tool" "$HOME/.cache/tool" "$HOME/.local/share/tool"
echo x > "$HOME/.config/tool/settings"
cd
test "$PWD" = "$HOME"
