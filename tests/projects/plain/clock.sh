# Returns the duration $1 in minutes and seconds.
duration() {
    echo "$(($1 / 60))m $(($1 % 60))s"
}
