package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// A recording that was made before and closed costs no graph, one that is open serves
// nobody else, and so does one that is not quite the same.
func TestRecordedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, drivertest.Config{}, Config{}, 64)
	b.eager()
	made := func(want int, f func() (pass.Recording, error)) pass.Recording {
		t.Helper()
		before := b.drv.Calls("Instantiate")
		rec, err := f()
		require.NoError(t, err)
		require.Equal(t, want, b.drv.Calls("Instantiate")-before)
		_, err = rec.Run(t.Context())
		require.NoError(t, err)
		return rec
	}
	same := func() (pass.Recording, error) { return b.record(t, 64) }
	other := made(1, same) // the first is open
	require.NoError(t, other.Close())
	second := made(0, same)
	made(1, same) // both are open
	require.NoError(t, second.Close())
	made(1, func() (pass.Recording, error) { return b.record(t, 65) })
	b.dev.(Tunable).Force("something", "else")
	third := made(1, same) // chosen anew
	require.NoError(t, third.Close())
	made(0, same)
}

// Programs are kept only so far, and not at all where memory is short.
func TestKeptPrograms(t *testing.T) {
	t.Parallel()
	b := newBench(t, drivertest.Config{}, Config{}, 1)
	b.eager()
	for n := range 2 * backend.KeptPrograms {
		rec, err := b.record(t, 2+n)
		require.NoError(t, err)
		require.NoError(t, rec.Close())
	}
	require.Equal(t, backend.KeptPrograms, b.drv.Calls("Instantiate")-b.drv.Calls("DestroyExec"))
	rec, err := b.record(t, 2) // given up first
	require.NoError(t, err)
	require.Equal(t, 2*backend.KeptPrograms+1, b.drv.Calls("Instantiate"))
	require.NoError(t, rec.Close())
	b.drv.Fail("Create", 1, driver.OutOfMemory)
	_, err = b.record(t, 5<<20)
	require.NoError(t, err, "with the memory of those that were kept")
	require.Equal(t, b.drv.Calls("Instantiate"), b.drv.Calls("DestroyExec")+1)
}

// Temporaries that take more than is kept are given up with the last recording, and there
// again for the next.
func TestRecordedAgainWithoutWorkspace(t *testing.T) {
	t.Parallel()
	b := newBench(t, drivertest.Config{}, Config{}, 1)
	b.eager()
	first, err := b.record(t, keptBytes)
	require.NoError(t, err)
	require.NoError(t, b.rec.Close())
	require.NoError(t, first.Close())
	before := b.drv.Calls("Map")
	rec, err := b.record(t, keptBytes)
	require.NoError(t, err)
	require.Equal(t, 1, b.drv.Calls("Instantiate"))
	require.Greater(t, b.drv.Calls("Map"), before)
	_, err = rec.Run(t.Context())
	require.NoError(t, err)
}

// A workspace that moves takes the graphs along.
func TestRecordedAgainElsewhere(t *testing.T) {
	t.Parallel()
	p := drivertest.Hopper()
	p.NoVirtual = true
	b := newBench(t, drivertest.Config{Devices: []drivertest.Profile{p}}, Config{}, 64)
	b.eager()
	first, err := b.record(t, 65)
	require.NoError(t, err)
	require.NoError(t, first.Close())
	_, err = b.record(t, 5<<20)
	require.NoError(t, err)
	rec, err := b.record(t, 65)
	require.NoError(t, err)
	require.Equal(t, 3, b.drv.Calls("Instantiate"))
	_, err = rec.Run(t.Context())
	require.NoError(t, err)
}
