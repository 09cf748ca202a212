package cuda

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/kernels"
)

// usage is which kernels were launched, by the tier that they came from.
type usage struct {
	mu    sync.Mutex
	names map[string]map[string]bool // name → tiers
}

var used usage

func (u *usage) logger() *slog.Logger { return slog.New(u) }

// Enabled implements slog.Handler.
func (u *usage) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler: a device tells of each kernel that it loads.
func (u *usage) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "cuda: kernel" {
		return nil
	}
	var name, tier string
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "name":
			name = a.Value.String()
		case "tier":
			tier = a.Value.String()
		}
		return true
	})
	u.note(name, tier)
	if u != &used {
		used.note(name, tier)
	}
	return nil
}

func (u *usage) note(name, tier string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.names == nil {
		u.names = map[string]map[string]bool{}
	}
	if u.names[name] == nil {
		u.names[name] = map[string]bool{}
	}
	u.names[name][tier] = true
}

// has reports whether a kernel was loaded from any tier.
func (u *usage) has(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.names[name]) > 0
}

// count returns how many kernels were loaded.
func (u *usage) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.names)
}

// WithAttrs implements slog.Handler.
func (u *usage) WithAttrs([]slog.Attr) slog.Handler { return u }

// WithGroup implements slog.Handler.
func (u *usage) WithGroup(string) slog.Handler { return u }

// write says of every kernel of the table from which tiers it was loaded, and from which
// not though it is there; and then which tiers that is so of as a whole, since the device
// does not run them.
//
// What the file says already is kept, so that several runs make one list.
func (u *usage) write(path string) error {
	if err := u.read(path); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	var text strings.Builder
	all, ran := map[string]int{}, map[string]int{}
	for _, family := range kernels.Families() {
		for _, e := range family.Entries {
			var yes, no []string
			for _, t := range kernels.Tiers() {
				if !t.Has(e) {
					continue
				}
				all[t.Name]++
				if u.names[e.Name][t.Name] {
					ran[t.Name]++
					yes = append(yes, t.Name)
				} else {
					no = append(no, t.Name)
				}
			}
			fmt.Fprintf(&text, "%s: ran from %s; not from %s\n", e.Name, listed(yes), listed(no))
		}
	}
	for _, t := range kernels.Tiers() {
		fmt.Fprintf(&text, "%s: %d of %d kernels ran\n", t.Name, ran[t.Name], all[t.Name])
	}
	return os.WriteFile(path, []byte(text.String()), 0o666)
}

// read notes what a file says that ran, if there is one.
func (u *usage) read(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		name, tiers, ok := strings.Cut(line, ": ran from ")
		tiers, _, _ = strings.Cut(tiers, ";")
		for tier := range strings.FieldsSeq(tiers) {
			if ok && tier != "none" {
				u.note(name, tier)
			}
		}
	}
	return err
}

// Lists of several runs are one list.
func TestUsageIsMerged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "used")
	for _, tier := range []string{"sm_90a", "ptx_75"} {
		var u usage
		u.note("move_fill", tier)
		require.NoError(t, u.write(path))
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "move_fill: ran from sm_90a ptx_75; not from sm_75 sm_80 ")
	require.Contains(t, string(text), "move_copy: ran from none; not from sm_75 ")
	require.Contains(t, string(text), "\nptx_75: 1 of ")
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, " ")
}

// TANDEM_CUDA_USED names a file for the list of kernels that the tests have used.
func TestMain(m *testing.M) {
	code := m.Run()
	if path := os.Getenv("TANDEM_CUDA_USED"); path != "" {
		if err := used.write(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
