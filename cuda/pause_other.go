//go:build !linux

package cuda

import "time"

// pause sleeps for about a time.
func pause(d time.Duration) { time.Sleep(d) }
