package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tandem-gpu/tandem"
	"github.com/tandem-gpu/tandem/gpu"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
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
	t := &target{name: name, math: opt.math, time: opt.time}
	t.open = func(ctx context.Context) (pass.Device, error) {
		switch name {
		case "cpu":
			return cpu.Open(cpu.Config{Threads: opt.threads})
		case "cuda", "gpu", "software":
			return tandem.Open(ctx, name)
		}
		return gpu.Open(ctx, gpu.Config{Adapter: name})
	}
	start := time.Now()
	dev, err := t.open(ctx)
	if err != nil {
		reason := strings.TrimPrefix(oneLine(err), "tandem: no device: "+name+": ")
		return nil, fmt.Errorf("device %s: %s", name, reason)
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
		parts = append(parts, fmt.Sprintf("%d threads", i.Threads))
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
