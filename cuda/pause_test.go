package cuda

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Ends are seen soon after they come, though the wait sleeps: most of a millisecond would be
// more than most runs take.
func TestEndsAreSeenSoon(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("sleeps of other systems are long")
	}
	const takes = 700 * time.Microsecond
	for began := time.Now(); ; {
		var late []time.Duration
		for range 51 {
			start := time.Now()
			err := (&device{}).until(time.Minute, func() (bool, error) { return time.Since(start) >= takes, nil })
			require.NoError(t, err)
			late = append(late, time.Since(start)-takes)
		}
		slices.Sort(late)
		// A busy machine wakes nobody in time, but not for ever.
		if late[5] < 300*time.Microsecond {
			t.Logf("late by %v, at most %v", late[len(late)/2], late[len(late)-1])
			return
		}
		require.Less(t, time.Since(began), time.Minute, "no series of ends was seen soon")
	}
}
