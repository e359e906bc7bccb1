// Package clock shows durations to people.
package clock

import "fmt"

// Duration returns a duration in minutes and seconds.
func Duration(seconds int) string {
	return fmt.Sprintf("%dm %ds", seconds/60, seconds%60)
}
