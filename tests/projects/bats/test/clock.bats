@test "minutes come first" {
  [ "$(sh bin/clock 65)" = "1m 5s" ]
}
