greet() { printf 'Hello, %s\n' "$1"; }
