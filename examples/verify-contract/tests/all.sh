test "$(ls tests | wc -l)" -eq 2
