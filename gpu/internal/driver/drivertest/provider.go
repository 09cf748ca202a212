package drivertest

import (
	"context"
	"fmt"
	"slices"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// Provider is a provider of devices in memory, for tests of how adapters are chosen.
type Provider struct {
	// List is what Adapters returns; Index is filled in. Zero limits stand for
	// DefaultLimits.
	List []driver.Adapter
	// Config configures the devices; limits and features come from Open.
	Config Config
	// OpenErr makes Open of that index fail, as when a device vanishes after listing.
	OpenErr map[int]error
	// Opened collects the devices that Open made.
	Opened []*Device
}

var _ driver.Provider = (*Provider)(nil)

// Name implements driver.Provider.
func (p *Provider) Name() string { return "memory" }

// Adapters implements driver.Provider.
func (p *Provider) Adapters(ctx context.Context) ([]driver.Adapter, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("drivertest: list adapters: %w", context.Cause(ctx))
	}
	if len(p.List) == 0 {
		return nil, fmt.Errorf("drivertest: no adapter: the list of this provider is empty: %w", pass.ErrNoDevice)
	}
	list := slices.Clone(p.List)
	for i := range list {
		list[i].Index = i
		list[i].Limits = DefaultLimits().Override(list[i].Limits)
	}
	return list, nil
}

// Open implements driver.Provider.
func (p *Provider) Open(ctx context.Context, index int, cfg driver.DeviceConfig) (driver.Device, error) {
	list, err := p.Adapters(ctx)
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= len(list) {
		return nil, fmt.Errorf("drivertest: open adapter %d: there are %d: %w", index, len(list), pass.ErrNoDevice)
	}
	if err := p.OpenErr[index]; err != nil {
		return nil, err
	}
	config := p.Config
	if config.Limits, config.Features, err = list[index].Grant(cfg); err != nil {
		return nil, err
	}
	config.MemoryBudget = cfg.MemoryBudget
	d := New(config)
	p.Opened = append(p.Opened, d)
	return d, nil
}

// Close implements driver.Provider.
func (p *Provider) Close() error { return nil }
