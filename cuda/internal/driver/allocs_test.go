//go:build linux && (amd64 || arm64) && !android && !race

package driver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What every run calls allocates nothing.
func TestCallsAllocateNothing(t *testing.T) {
	d, err := Open(build(t))
	require.NoError(t, err)
	th := NewThread(d)
	var problem error
	kernel, early := Launch{Function: 1, Args: []byte("word")}, Launch{Function: 1, Args: []byte("word"), Early: true}
	work := func() error {
		if _, err := d.Query(0x200); err != nil {
			return err
		}
		if _, err := d.QueryEvent(0x300); err != nil {
			return err
		}
		for _, err := range [...]error{
			d.CopyToDevice(1, 2, 3, 4), d.CopyToHost(1, 2, 3, 4), d.CopyOnDevice(1, 2, 3, 4), d.Set32(1, 2, 3, 4),
			d.LaunchGraph(1, 2), d.Launch(kernel, 3), d.Launch(early, 3), d.Record(1, 2), d.Synchronize(1),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	}
	run := func() {
		if err := th.Do(work); err != nil {
			problem = err
		}
	}
	run()
	require.NoError(t, problem)
	require.Zero(t, testing.AllocsPerRun(100, run))
	require.NoError(t, problem)
}
