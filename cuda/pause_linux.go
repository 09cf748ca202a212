package cuda

import (
	"syscall"
	"time"
)

// pause sleeps for about a time, and some fifty microseconds that the system takes more. A
// time.Sleep of less than a millisecond takes a whole one where nothing else is to be done,
// which is longer than most runs.
func pause(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	syscall.Nanosleep(&t, nil) // a signal ends it early, which does no harm
}
