package passtest

import (
	"os"
	"testing"
	"time"

	"github.com/tandem-gpu/tandem/pass"
)

// Config adapts the suite to a backend. The zero value asks for everything.
type Config struct {
	// Math lists the kinds of math that cases run in; nil: Exact and Fast.
	Math []pass.Math
	// Full runs the large set of cases too, as TANDEM_FULL=1 does.
	Full bool
	// Ops lists the ops, by name, whose cases run, and nothing else does: for a backend that
	// has several ways to compute them. nil: all, and the rest of the suite.
	Ops []string
	// BySize says that the backend chooses kernels by the size of an op, so that an op in
	// parts gives the same within tolerance, but not the same bits, as the whole.
	BySize bool
	// Allocs is how often replaying a recording may allocate: 0, or what a binding to
	// native code cannot avoid.
	Allocs float64
	// Goroutines is how many may be left after Close, for threads that a driver keeps.
	Goroutines int
}

// Run runs the whole suite. Open opens a device, which the suite closes; it is called
// many times, and more than one device is open at a time.
func Run(t *testing.T, open func(testing.TB) pass.Device) { Config{}.Run(t, open) }

// Run runs the suite as configured; see the function [Run].
func (c Config) Run(t *testing.T, open func(testing.TB) pass.Device) {
	s := newSuite(c, open)
	t.Run("cases", func(t *testing.T) { s.cases(t) })
	if c.Ops != nil {
		return
	}
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) { c.run(t, s) })
	}
	if dir := os.Getenv("TANDEM_CASES"); dir != "" {
		t.Run("folders", func(t *testing.T) {
			root, err := caseRoot(dir)
			ok(t, err, "TANDEM_CASES")
			s.folders(t, root)
		})
	}
}

// A suite is the contract applied to one backend.
type suite struct {
	Config
	openDevice func(testing.TB) pass.Device
	// patience is how long work may go on that a cancel should have stopped, before it
	// counts as not stopped: many times what a part of a run takes on a slow machine
	// under the race detector.
	patience time.Duration
}

func newSuite(c Config, open func(testing.TB) pass.Device) *suite {
	if c.Math == nil {
		c.Math = []pass.Math{pass.Exact, pass.Fast}
	}
	c.Full = c.Full || os.Getenv("TANDEM_FULL") == "1"
	return &suite{Config: c, openDevice: open, patience: 10 * time.Second}
}

// A check is one part of the contract. It works on any testing.TB, so that the suite's
// own tests can watch it fail.
type check struct {
	name string
	run  func(testing.TB, *suite)
}

func checks() []check {
	return []check{
		{"chain/long", longChain},
		{"chain/random", randomGraphs},
		{"chain/fuzz", randomRecordings},
		{"chain/overlapping-reads", overlappingReads},
		{"chain/stacked", stackedViews},
		{"chain/loop", greedyLoop},
		{"chain/shared-reads", sharedReads},
		{"sessions/recordings", twoRecordings},
		{"sessions/interleaved", interleavedSessions},
		{"sessions/goroutines", parallelSessions},
		{"empty", emptyThings},
		{"binds", badBinds},
		{"outputs", badOutputs},
		{"queue", queuedRuns},
		{"reuse", reusedRuns},
		{"order", orderedAccess},
		{"access", badAccess},
		{"cancel/ended", endedContexts},
		{"cancel/queued", cancelQueued},
		{"cancel/middle", cancelMiddle},
		{"cancel/wait", impatientWait},
		{"index", indexBeyondRows},
		{"indices", indicesBeyond},
		{"caches", cacheHandles},
		{"lifetime", lifetimes},
		{"handles", badHandles},
		{"misuse/fields", misusedFields},
		{"misuse/rules", misusedRules},
		{"weights", badWeights},
		{"record", badCallbacks},
		{"progress", progress},
		{"dump", dumps},
		{"close", closing},
		{"allocs", replayAllocates},
		{"leaks", leaks},
	}
}

// open opens a device that is closed when the test ends.
func (s *suite) open(t testing.TB) pass.Device {
	t.Helper()
	dev := s.openDevice(t)
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return dev
}

// session opens a session on a device of its own.
func (s *suite) session(t testing.TB) (pass.Device, pass.Session) {
	t.Helper()
	dev := s.open(t)
	return dev, newSession(t, dev)
}

func newSession(t testing.TB, dev pass.Device) pass.Session {
	t.Helper()
	ses, err := dev.NewSession(pass.SessionConfig{Label: t.Name()})
	ok(t, err, "new session")
	return ses
}
