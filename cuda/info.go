package cuda

import (
	"fmt"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// variants says what the device uses and why.
func (d *device) variants() []pass.Variant {
	a := d.attributes
	unit := func(name string, least int, what string) pass.Variant {
		v := pass.Variant{Name: name, Used: a.capability >= least, Reason: what}
		if !v.Used {
			v.Reason = fmt.Sprintf("capability %d.%d, %d.%d or later is needed", a.capability/10, a.capability%10, least/10, least%10)
		}
		return v
	}
	all := []pass.Variant{
		{Name: "kernels", Used: true, Reason: d.kernels.tier()},
		unit("tensor cores", 75, "products of F16 parts, sums in F32"),
	}
	early := pass.Variant{Name: "programmatic launch", Used: d.kernels.wait(), Reason: "a kernel is on its way before the one that it waits for is done"}
	if !early.Used {
		early.Reason = "the loaded kernels do not wait by themselves: " + d.kernels.tier()
	}
	all = append(all, early)
	hopper := pass.Variant{Name: "warpgroup products", Used: d.kernels.has(kernels.WideShapes[0].Name()), Reason: "asynchronous products fed by bulk tensor copies"}
	if !hopper.Used {
		hopper.Reason = "the loaded kernels have none: " + d.kernels.tier()
	}
	all = append(all, hopper, pass.Variant{Name: "fixed workspace", Used: a.virtual, Reason: "memory is mapped where its addresses were set apart"})
	for _, b := range d.choices.boundaries() {
		all = append(all, pass.Variant{Name: b.Name + ": " + b.Choice, Used: true, Reason: b.Because})
	}
	return all
}
