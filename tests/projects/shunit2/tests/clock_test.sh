test_minutes_come_first() {
    assertEquals "1m 5s" "$(sh bin/clock 65)"
}

. shunit2
