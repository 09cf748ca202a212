package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/tandem-gpu/tandem"
	"github.com/tandem-gpu/tandem/examples/internal/device"
	"github.com/tandem-gpu/tandem/pass"
)

var (
	// backends are the names that --device knows beside auto.
	backends = []string{"cuda", "gpu", "software", "cpu"}
	// preferred are those of them that auto tries, in order.
	preferred = []string{"cuda", "gpu", "cpu"}
)

// A machine is where devices come from.
type machine struct {
	open    func(ctx context.Context, names ...string) (pass.Device, error)
	devices func(ctx context.Context) []tandem.Candidate
}

var thisMachine = machine{tandem.Open, tandem.Devices}

// openDevice opens the device that is wanted. If the program chose it, the lines of about
// say which it is and why it is not another.
func (m machine) openDevice(ctx context.Context, want string) (dev pass.Device, about []string, err error) {
	switch {
	case want == "auto":
		return m.openAny(ctx)
	case slices.Contains(backends, want):
		dev, err = m.open(ctx, want)
	default:
		var c tandem.Candidate
		if c, err = m.find(ctx, want); err == nil {
			dev, err = c.Open(ctx)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("device %s: %s", want, device.Reason(err, want))
	}
	return dev, nil, nil
}

// openAny opens the first device that works.
func (m machine) openAny(ctx context.Context) (pass.Device, []string, error) {
	var reasons []string
	for _, name := range preferred {
		dev, err := m.open(ctx, name)
		if err == nil {
			info := dev.Info()
			return dev, append(reasons, fmt.Sprintf("using %s (%s)", info.Backend, info.Name)), nil
		}
		// A setting that asks for something that does not exist is not passed over.
		if ctx.Err() != nil || errors.Is(err, pass.ErrInvalid) {
			return nil, nil, err
		}
		reasons = append(reasons, fmt.Sprintf("not %s: %s", name, device.Reason(err, name)))
	}
	return nil, nil, fmt.Errorf("%s: %w", strings.Join(reasons, "; "), pass.ErrNoDevice)
}

// find returns the device of the given index or name in the list.
func (m machine) find(ctx context.Context, want string) (tandem.Candidate, error) {
	listed := m.listed(ctx)
	var found []int
	for i, c := range listed {
		if want == strconv.Itoa(i) {
			return c, nil
		}
		if strings.EqualFold(want, c.Name) {
			found = append(found, i)
		}
	}
	switch {
	case len(found) == 0:
		var names []string
		for i, c := range listed {
			names = append(names, fmt.Sprintf("%d (%s)", i, c.Name))
		}
		return tandem.Candidate{}, fmt.Errorf("want auto, %s, or one of --list-devices: %s", strings.Join(backends, ", "), strings.Join(names, ", "))
	case len(found) > 1:
		return tandem.Candidate{}, fmt.Errorf("%d devices have this name: want an index of --list-devices", len(found))
	}
	return listed[found[0]], nil
}

// listed returns the devices that have an index: those that are there, usable or not.
func (m machine) listed(ctx context.Context) []tandem.Candidate {
	return slices.DeleteFunc(m.devices(ctx), func(c tandem.Candidate) bool { return c.Name == "" })
}

func (p *program) listDevices(ctx context.Context) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	n := 0
	for _, c := range p.machine.devices(ctx) {
		index := "-"
		if c.Name != "" {
			index = strconv.Itoa(n)
			n++
		}
		var about []string
		for _, s := range []string{c.Kind, c.API, c.Driver} {
			if s != "" && !slices.Contains(about, s) {
				about = append(about, s)
			}
		}
		if !c.Usable {
			about = append(about, "not usable: "+c.Reason)
		}
		name := c.Name
		if name == "" {
			name = "none"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", index, c.Backend, name, strings.Join(about, ", "))
	}
	return w.Flush()
}
