package cuda

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"

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
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.names == nil {
		u.names = map[string]map[string]bool{}
	}
	if u.names[name] == nil {
		u.names[name] = map[string]bool{}
	}
	u.names[name][tier] = true
	return nil
}

// WithAttrs implements slog.Handler.
func (u *usage) WithAttrs([]slog.Attr) slog.Handler { return u }

// WithGroup implements slog.Handler.
func (u *usage) WithGroup(string) slog.Handler { return u }

// write says of every kernel of the table in which tiers it was loaded.
func (u *usage) write(path string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, family := range kernels.Families() {
		for _, e := range family.Entries {
			fmt.Fprintf(f, "%s", e.Name)
			for _, t := range kernels.Tiers() {
				if u.names[e.Name][t.Name] {
					fmt.Fprintf(f, " %s", t.Name)
				}
			}
			fmt.Fprintln(f)
		}
	}
	return nil
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
