package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

func testConcurrent(t *testing.T, b *bench) {
	Hammer(t, b.Device, 4, 25)
}

// Hammer runs goroutines on one device, each for some rounds of right and wrong calls,
// and fails the test when an answer belongs to somebody else's call.
func Hammer(t testing.TB, d driver.Device, goroutines, rounds int) {
	errs := make([]error, goroutines)
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			for round := range rounds {
				if err := hammerOnce(d, uint32(1000*i+round)); err != nil {
					errs[i] = fmt.Errorf("goroutine %d, round %d: %w", i, round, err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	l := d.Ledger()
	l.InFlight = 0
	require.Zero(t, l)
}

// hammerOnce does a round. Wrong calls must fail and name what was theirs; right calls
// must not.
func hammerOnce(d driver.Device, mine uint32) (err error) {
	ctx := context.Background()
	name := fmt.Sprintf("bad-%d", mine)
	if _, err := d.CreatePipeline(driver.PipelineDesc{Label: name, Source: "fn main(( {", Entry: "main"}); !errors.Is(err, pass.ErrInvalid) {
		return fmt.Errorf("a bad pipeline gave %w", orNone(err))
	} else if !strings.Contains(err.Error(), name) {
		return fmt.Errorf("a bad pipeline %s gave another's error: %w", name, err)
	}
	p, err := d.CreatePipeline(addOne.desc())
	if err != nil {
		return err
	}
	work, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.Storage | driver.CopySrc | driver.CopyDst})
	if err != nil {
		return err
	}
	staging, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.MapRead | driver.CopyDst})
	if err != nil {
		return err
	}
	g, err := d.CreateBindGroup(p, []driver.Binding{{Buffer: work, Size: 256}})
	if err != nil {
		return err
	}
	if err := d.Write(work, 0, []byte{byte(mine), byte(mine >> 8), byte(mine >> 16), 0}); err != nil {
		return err
	}
	if _, err := d.Submit([]driver.Command{driver.Clear(staging, 0, 0)}); !errors.Is(err, pass.ErrInvalid) {
		return fmt.Errorf("a bad command gave %w", orNone(err))
	}
	serial, err := d.Submit([]driver.Command{driver.Dispatch(p, g, 1, 1, 1), driver.Copy(staging, 0, work, 0, 256)})
	if err != nil {
		return err
	}
	if mine%2 == 0 {
		if err := d.Wait(ctx, serial, patience); err != nil {
			return err
		}
	}
	got := make([]byte, 3)
	if err := d.ReadMapped(ctx, staging, 0, got, patience); err != nil {
		return err
	}
	if value := uint32(got[0]) | uint32(got[1])<<8 | uint32(got[2])<<16; value != mine+1 {
		return fmt.Errorf("wanted %d, read %d", mine+1, value)
	}
	return errors.Join(d.DestroyBindGroup(g), d.DestroyPipeline(p), d.DestroyBuffer(work), d.DestroyBuffer(staging))
}

func orNone(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}
