package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tandem-gpu/tandem"
	"github.com/tandem-gpu/tandem/examples/internal/device"
	"github.com/tandem-gpu/tandem/pass"
)

// preferred are the devices that auto tries, in order.
var preferred = []string{"cuda", "gpu", "cpu"}

// A machine is where devices come from.
type machine struct {
	open    func(ctx context.Context, name string) (pass.Device, error)
	devices func(ctx context.Context) []tandem.Candidate
}

var thisMachine = machine{device.Open, tandem.Devices}

// openDevice opens the device that is wanted. If the program chose it, the lines of about
// say which it is and why it is not another.
func (m machine) openDevice(ctx context.Context, want string) (dev pass.Device, about []string, err error) {
	if want == "auto" {
		return m.openAny(ctx)
	}
	if dev, err = m.open(ctx, want); err != nil {
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

// listDevices lists the devices under their names for --device.
func (p *program) listDevices(ctx context.Context) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	for _, c := range p.machine.devices(ctx) {
		var about []string
		for _, s := range []string{c.Kind, c.API, c.Driver} {
			if s != "" && !slices.Contains(about, s) {
				about = append(about, s)
			}
		}
		if !c.Usable {
			about = append(about, "not usable: "+c.Reason)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", cmp.Or(device.Name(c), "-"), c.Backend, cmp.Or(c.Name, "none"), strings.Join(about, ", "))
	}
	return w.Flush()
}
