package cuda

import (
	"fmt"
	"unsafe"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// tileWide emits a product in wide tiles. Blocks are as many as run at a time; each goes
// through its share of the tiles.
func (c *compiler) tileWide(p product, t tileChoice, why string, cost pass.Cost) error {
	s := t.wide
	k := c.call(s.Name())
	args := kernels.WideTile{Tile: p.args(k)}
	args.Tile.Splits = 1
	p.results(k, &args.Tile)
	if err := k.wideMaps(&args.Tile, &p, s); err != nil {
		return fmt.Errorf("tensor maps of %v: %w", t, err)
	}
	clusters := min(wideClusters(&p, s), wideAtOnce(s, c.d.attributes.sms))
	return run(k.says(why), args, grid{clusters * s.Blocks, 1, 1}, s.Shared(), cost)
}

// wideMaps notes the maps of the operands.
func (k *call) wideMaps(a *kernels.Tile, p *product, s kernels.WideShape) error {
	var w kernels.WideTile
	for _, m := range []struct {
		to          uintptr
		at          kernels.F16
		size        []uint64
		stride      []uint64
		rows, items int
	}{
		{unsafe.Offsetof(w.A), a.A, []uint64{uint64(p.depth), uint64(p.width), uint64(p.items)}, []uint64{uint64(2 * a.AStep), uint64(2 * a.AItem)}, kernels.WideRows, 1},
		{unsafe.Offsetof(w.ALow), a.ALow, []uint64{uint64(p.depth), uint64(p.width), uint64(p.items)}, []uint64{uint64(2 * a.AStep), uint64(2 * a.AItem)}, kernels.WideRows, 1},
		{unsafe.Offsetof(w.B), a.B, []uint64{uint64(p.depth), uint64(a.Columns)}, []uint64{uint64(2 * a.BRow)}, s.Columns / s.Blocks, 0},
		{unsafe.Offsetof(w.BLow), a.BLow, []uint64{uint64(p.depth), uint64(a.Columns)}, []uint64{uint64(2 * a.BRow)}, s.Columns / s.Blocks, 0},
	} {
		if m.at == 0 {
			continue
		}
		t := driver.TensorMap{
			Type: driver.TensorF16, Address: driver.Pointer(m.at), Size: m.size, Stride: m.stride,
			Box: []uint32{kernels.WideDepth, uint32(m.rows), uint32(m.items)}[:len(m.size)], Swizzle: driver.Swizzle128, Promote: 256,
		}
		if err := k.tensorMap(m.to, t, p.w.high); err != nil {
			return err
		}
	}
	return nil
}
