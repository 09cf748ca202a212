package passtest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// The toy without a fault passes.
func TestToyConforms(t *testing.T) {
	t.Setenv("TANDEM_COVERAGE", "") // it is no backend
	t.Setenv("TANDEM_FUZZ_SECONDS", "0")
	Config{Math: []pass.Math{pass.Exact}}.Run(t, func(testing.TB) pass.Device { return newToy("") })
}

func TestFoldersRun(t *testing.T) {
	s := newSuite(Config{}, func(testing.TB) pass.Device { return newToy("") })
	s.folders(t, "cases/testdata")
}

func TestCaseRoot(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	link := filepath.Join(t.TempDir(), "link")
	if os.Symlink(dir, link) != nil {
		link = dir // not on this system
	}
	root, err := caseRoot(link)
	require.NoError(t, err)
	require.Equal(t, dir, root, "a walk does not follow a link at its root")
	_, err = caseRoot("cases/testdata")
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorContains(t, err, "want an absolute path")
}

// A stub is a testing.TB that keeps what a check says.
type stub struct {
	testing.TB
	mu       sync.Mutex
	messages []string
	cleanups []func()
}

func (s *stub) Helper()             {}
func (s *stub) Name() string        { return "stub" }
func (s *stub) Log(...any)          {}
func (s *stub) Logf(string, ...any) {}
func (s *stub) Cleanup(f func())    { s.cleanups = append(s.cleanups, f) }
func (s *stub) Errorf(format string, a ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = append(s.messages, fmt.Sprintf(format, a...))
}

func (s *stub) Fatalf(format string, a ...any) {
	s.Errorf(format, a...)
	runtime.Goexit()
}

// watch runs f and returns what it complained about.
func watch(f func(testing.TB)) string {
	s := &stub{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for i := len(s.cleanups) - 1; i >= 0; i-- {
				s.cleanups[i]()
			}
		}()
		f(s)
	}()
	<-done
	return strings.Join(s.messages, "\n")
}

// runCheck runs one check, or "cases/" and the beginning of the name of a case.
func runCheck(t *testing.T, name string, open func(testing.TB) pass.Device) string {
	t.Helper()
	t.Setenv("TANDEM_FUZZ_SECONDS", "0") // the seeds that are always run find the faults
	s := newSuite(Config{}, open)
	s.patience = 300 * time.Millisecond
	if prefix, isCase := strings.CutPrefix(name, "cases/"); isCase {
		for _, e := range cases.All() {
			if strings.HasPrefix(e.Name, prefix) {
				return watch(func(tb testing.TB) { s.runCase(tb, s.open(tb), e.Case()) })
			}
		}
	}
	for _, c := range checks() {
		if c.name == name {
			return watch(func(tb testing.TB) { c.run(tb, s) })
		}
	}
	require.Fail(t, "no such check", name)
	return ""
}

// A guarded fault is found by a check, which is silent without it.
type guarded struct{ fault, check, says string }

// Faults of the hardware.
var hardwareFaults = []guarded{
	{"off by 1e-3", "cases/gemm/none-bias-5", "largest error"},
	{"off by 1e-3", "chain/long", "largest error"},
	{"scaled by 1e-5", "cases/conv1d/silero-stft-576", "relative L2 error"},
	{"one element too many", "cases/magnitude/silero", "an element outside of the view was written"},
	{"input written", "cases/gemm/none-bias-5", "only read was written"},
	{"strides ignored", "cases/map/none-1x", "Y:"},
	{"strides ignored", "chain/overlapping-reads", "run"},
	{"offsets ignored", "chain/shared-reads", "three arguments"},
	{"lengths ignored", "cases/conv1d/lengths-80", "NaN"},
	{"lengths ignored", "cases/lstm/lengths-device", "NaN"},
	{"nan swallowed", "cases/gemm/nan-in-rows", "want NaN"},
	{"nan spread", "cases/magnitude/nan", "got NaN"},
	{"tanh overflows", "cases/map/tanh-extreme", "got NaN, want 1"},
	{"negative zero lost", "cases/map/relu-extreme", "differ in bits"},
	{"last bit differs by run", "cases/map/silu-1x", "second run"},
	{"last bit differs by part", "cases/gemm/none-bias-5", "in parts"},
	{"states forgotten", "cases/lstm/in-place", "H:"},
	{"lifetimes too short", "chain/long", "after op"},
	{"lifetimes too short", "chain/random", "graph"},
	{"off by 1e-3", "chain/fuzz", "largest error"},
	{"one element too many", "chain/fuzz", "outside of the view"},
	{"strides ignored", "chain/fuzz", "seed"},
	{"lengths ignored", "chain/fuzz", "seed"},
	{"lifetimes too short", "chain/fuzz", "share memory"},
	{"last bit differs by part", "chain/fuzz", "in parts"},
	{"addend forgotten", "chain/fuzz", "seed"},
	{"states forgotten", "chain/fuzz", "H: relative"},
	{"states do not last", "chain/fuzz", "before run 1"},
	{"caches never round", "chain/fuzz", "attend"},
	{"counters stay", "chain/fuzz", "Index: "},
	{"strides ignored", "chain/stacked", "stacked"},
	{"addend forgotten", "chain/loop", "ids"},
	{"value of a cache lost", "cases/append/", "Cache"},
	{"index clamped", "indices", "given none"},
	{"runs clear other states", "sessions/recordings", "add"},
	{"sessions share state", "sessions/interleaved", "session"},
	{"sessions share state", "sessions/goroutines", "session"},
	{"stale outputs", "queue", "run 1"},
	{"index clamped", "index", "given none"},
	{"load ignores errors", "weights", "given none"},
	{"alloc leaves garbage", "order", "state from Alloc"},
	{"write is off by one", "order", "after a write of three"},
	{"replay allocates", "allocs", "allocates"},
	{"goroutine stays", "leaks", "goroutines"},
}

// Faults of what lies above the hardware.
var sessionFaults = []guarded{
	{"nothing is refused", "empty", "alloc of 0 elements"},
	{"first bind wins", "binds", "twice"},
	{"errors without names", "binds", "message with"},
	{"length of output ignored", "outputs", "too short"},
	{"closed runs stay", "reuse", "closed run"},
	{"errors lost", "access", "given none"},
	{"errors without names", "access", "message with"},
	{"contexts ignored", "cancel/ended", "given none"},
	{"contexts ignored", "cancel/queued", "was not dropped"},
	{"contexts ignored", "cancel/middle", "was not interrupted"},
	{"first data when cancelled", "cancel/queued", "can be read"},
	{"waiting once only", "cancel/wait", "wait again"},
	{"free spoils what is in use", "lifetime", "after free"},
	{"errors lost", "caches", "given none"},
	{"errors without names", "caches", "message with"},
	{"errors without names", "handles", "message with"},
	{"errors lost", "handles", "given none"},
	{"errors without sentinels", "handles", "want an error that is"},
	{"errors without names", "misuse/fields", "message with"},
	{"errors lost", "misuse/fields", "given none"},
	{"errors lost", "misuse/rules", "given none"},
	{"errors without sentinels", "misuse/rules", "want an error that is"},
	{"errors without names", "record", "out of cheese"},
	{"progress stops short", "progress", "rise to 1"},
	{"dump is empty", "dump", "to name"},
	{"second close fails", "close", "close again"},
	{"errors without sentinels", "close", "want an error that is"},
}

func TestFaultsOfHardwareAreFound(t *testing.T) { findFaults(t, hardwareFaults, newToy) }

func TestFaultsOfSessionsAreFound(t *testing.T) { findFaults(t, sessionFaults, newWrapped) }

func findFaults(t *testing.T, faults []guarded, open func(fault string) pass.Device) {
	silent := map[string]bool{} // checks that were silent without a fault
	for _, row := range faults {
		t.Run(row.fault+" "+row.check, func(t *testing.T) {
			if row.check == "allocs" && raceEnabled {
				t.Skip("allocations are not counted under the race detector")
			}
			if !silent[row.check] {
				require.Empty(t, runCheck(t, row.check, func(testing.TB) pass.Device { return open("") }))
				silent[row.check] = true
			}
			require.Contains(t, runCheck(t, row.check, func(testing.TB) pass.Device { return open(row.fault) }), row.says)
		})
	}
}

// No check is without a fault that it finds.
func TestEveryCheckIsGuarded(t *testing.T) {
	guards := map[string]bool{}
	for _, row := range append(hardwareFaults, sessionFaults...) {
		guards[row.check] = true
	}
	for _, c := range checks() {
		require.True(t, guards[c.name], "no fault shows that check %s works", c.name)
	}
}
