package clock

import "testing"

func TestMinutesComeFirst(t *testing.T) {
	if got := Duration(65); got != "1m 5s" {
		t.Fatal(got)
	}
}
