# Stands for a package manager: it writes a lock file beside what it is asked for.
printf 'greeting 1.0.0\n' > deps.lock
printf '%s\n' '. ./src/greeting.sh' 'greet "$1"' > src/greet.sh
