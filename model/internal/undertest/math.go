package undertest

import (
	"context"
	"os"
	"testing"

	"github.com/tandem-gpu/tandem/pass"
)

// EachMath runs a test on each device under test, in Exact and, where that makes a
// difference, in Fast math, which is a subtest of the device. On the CPU it makes none, and
// on a software adapter only with TANDEM_FULL=1 enough to be worth the time.
func EachMath(t *testing.T, test func(t *testing.T, dev pass.Device, m pass.Math)) {
	Each(t, func(t *testing.T, dev pass.Device) {
		test(t, dev, pass.Exact)
		kind := dev.Info().Kind
		if kind == "cpu" || kind == "software" && os.Getenv("TANDEM_FULL") != "1" {
			return
		}
		t.Run(pass.Fast.String(), func(t *testing.T) { test(t, In(dev, pass.Fast), pass.Fast) })
	})
}

// In returns a device whose recordings are all in one kind of math, whatever they ask for.
func In(dev pass.Device, m pass.Math) pass.Device { return deviceIn{dev, m} }

type deviceIn struct {
	pass.Device
	math pass.Math
}

// NewSession implements pass.Device.
func (d deviceIn) NewSession(cfg pass.SessionConfig) (pass.Session, error) {
	s, err := d.Device.NewSession(cfg)
	if err != nil {
		return nil, err
	}
	return sessionIn{s, d.math}, nil
}

type sessionIn struct {
	pass.Session
	math pass.Math
}

// Record implements pass.Session.
func (s sessionIn) Record(ctx context.Context, o pass.RecordOptions, f func(pass.Pass)) (pass.Recording, error) {
	o.Math = s.math
	return s.Session.Record(ctx, o, f)
}
