package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tandem-gpu/tandem/examples/internal/device"
	"github.com/tandem-gpu/tandem/pass"
)

// A target is a device that is measured.
type target struct {
	name   string // as on the command line
	dev    pass.Device
	open   func(context.Context) (pass.Device, error) // another time
	opened time.Duration                              // what the first time took
	math   pass.Math
	time   time.Duration // of a measurement
}

// openTarget opens the device that was named, and no other.
func openTarget(ctx context.Context, name string, opt options) (*target, error) {
	t := &target{name: name, math: opt.math, time: opt.pace.time}
	t.open = func(ctx context.Context) (pass.Device, error) { return device.Open(ctx, name) }
	start := time.Now()
	dev, err := t.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("device %s: %s", name, device.Reason(err, name))
	}
	t.opened = time.Since(start)
	t.dev = dev
	return t, nil
}

// about describes the device in a line.
func (t *target) about() string {
	i := t.dev.Info()
	parts := []string{i.API, i.Provider, i.Driver, i.Kind}
	if i.Threads > 0 {
		parts = append(parts, plural(i.Threads, "thread"))
	}
	if i.Memory > 0 {
		parts = append(parts, fmt.Sprintf("%.1f GiB", float64(i.Memory)/(1<<30)))
	}
	for _, v := range i.Variants {
		if v.Used {
			parts = append(parts, v.Name)
		}
	}
	var said []string
	for _, p := range parts {
		if p != "" {
			said = append(said, p)
		}
	}
	return fmt.Sprintf("%s, %s (%s)", i.Backend, i.Name, strings.Join(said, ", "))
}

// plural returns a number of things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
