package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// A backend is a way to compute, as --device names it.
type backend struct {
	name string
	auto bool // whether auto may choose it
	// find returns the devices that there are; an error says why there are none.
	find func(ctx context.Context) ([]candidate, error)
}

// A candidate is a device that may be opened.
type candidate struct {
	name   string
	detail string
	open   func(ctx context.Context) (pass.Device, error)
}

// backends in the order in which auto tries them.
var backends = []backend{
	{"cuda", true, notBuilt},
	{"gpu", true, notBuilt},
	{"software", false, notBuilt},
	{"cpu", true, findCPU},
}

func notBuilt(context.Context) ([]candidate, error) {
	return nil, errors.New("not built into this program")
}

func findCPU(context.Context) ([]candidate, error) {
	open := func(context.Context) (pass.Device, error) { return cpu.Open(cpu.Config{}) }
	return []candidate{{name: "cpu", detail: fmt.Sprintf("Go on %d threads", runtime.GOMAXPROCS(0)), open: open}}, nil
}

// openDevice opens the device that is wanted. If the program chose it, about says which
// it is and why it is not another.
func openDevice(ctx context.Context, want string) (dev pass.Device, about string, err error) {
	if want == "auto" {
		return openAny(ctx)
	}
	var listed []string
	for _, b := range backends {
		found, err := b.find(ctx)
		if b.name == want {
			if err != nil {
				return nil, "", fmt.Errorf("device %s: %w", want, err)
			}
			return openOne(ctx, found[0])
		}
		for _, c := range found {
			if want == strconv.Itoa(len(listed)) || strings.EqualFold(want, c.name) {
				return openOne(ctx, c)
			}
			listed = append(listed, fmt.Sprintf("%d (%s)", len(listed), c.name))
		}
	}
	return nil, "", fmt.Errorf("device %q: want auto, cuda, gpu, software, cpu, or of --list-devices: %s", want, strings.Join(listed, ", "))
}

func openOne(ctx context.Context, c candidate) (pass.Device, string, error) {
	dev, err := c.open(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("device %s: %w", c.name, err)
	}
	return dev, "", nil
}

// openAny opens the first device that works.
func openAny(ctx context.Context) (pass.Device, string, error) {
	var reasons []string
	for _, b := range backends {
		if !b.auto {
			continue
		}
		found, err := b.find(ctx)
		for _, c := range found {
			var dev pass.Device
			if dev, err = c.open(ctx); err == nil {
				about := fmt.Sprintf("using %s (%s)", c.name, c.detail)
				return dev, strings.Join(append([]string{about}, reasons...), "; "), nil
			}
		}
		reasons = append(reasons, fmt.Sprintf("%s: %s", b.name, oneLine(err)))
	}
	return nil, "", fmt.Errorf("%s: %w", strings.Join(reasons, "; "), pass.ErrNoDevice)
}

func (p *program) listDevices(ctx context.Context) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	n := 0
	for _, b := range backends {
		found, err := b.find(ctx)
		if err != nil {
			fmt.Fprintf(w, "-\t%s\t%s\n", b.name, oneLine(err))
			continue
		}
		for _, c := range found {
			fmt.Fprintf(w, "%d\t%s\t%s: %s\n", n, b.name, c.name, c.detail)
			n++
		}
	}
	return w.Flush()
}
