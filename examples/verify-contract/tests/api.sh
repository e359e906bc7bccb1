printed=$(sh api/greet.sh "$1")
test "$printed" = "Hello, $1!" || { echo "api/greet.sh $1 printed: $printed" >&2; exit 1; }
