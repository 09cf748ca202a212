package guard

import (
	"fmt"
	"slices"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
)

// CheckPipeline says whether such a pipeline can be made, as far as that shows without
// compiling it.
func (b *Book[B, P, G, Q]) CheckPipeline(d driver.PipelineDesc) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("driver: create pipeline %q: %w", d.Label, invalid(format, args...))
	}
	switch {
	case d.Source == "":
		return fail("no source")
	case d.Entry == "":
		return fail("no entry point")
	}
	for _, text := range []string{d.Label, d.Source, d.Entry} {
		if err := checkText("label, source or entry point", text); err != nil {
			return fmt.Errorf("driver: create pipeline: %w", err)
		}
	}
	var storage, uniform, dynamic uint32
	for i, kind := range d.Bindings {
		switch kind {
		case driver.StorageRead, driver.StorageReadWrite:
			storage++
		case driver.UniformBlock:
			uniform++
		case driver.UniformDynamic:
			uniform++
			dynamic++
		default:
			return fail("binding %d: kind %d", i, kind)
		}
	}
	for _, c := range []struct {
		what         string
		given, limit uint32
	}{
		{"bindings", uint32(len(d.Bindings)), b.limits.MaxBindings},
		{"storage bindings", storage, b.limits.MaxStorageBuffers},
		{"uniform bindings", uniform, b.limits.MaxUniformBuffers},
		{"dynamic uniform bindings", dynamic, min(b.limits.MaxDynamicUniforms, driver.MaxDynamic)},
		{"bytes of workgroup storage", d.WorkgroupStorage, b.limits.MaxWorkgroupStorage},
	} {
		if c.given > c.limit {
			return fail("%s: wanted at most %d, given %d", c.what, c.limit, c.given)
		}
	}
	return nil
}

// LayoutOf numbers binding lists: equal lists have equal numbers, counted from 0.
func (b *Book[B, P, G, Q]) LayoutOf(kinds []driver.BindingKind) int {
	key := make([]byte, len(kinds))
	for i, k := range kinds {
		key[i] = byte(k)
	}
	n, ok := b.layouts[string(key)]
	if !ok {
		n = len(b.layouts)
		b.layouts[string(key)] = n
	}
	return n
}

// AddPipeline enters a pipeline that CheckPipeline has passed.
func (b *Book[B, P, G, Q]) AddPipeline(d driver.PipelineDesc, native P) (driver.PipelineID, error) {
	p := &Pipeline[P]{Native: native, Label: d.Label, Bindings: slices.Clone(d.Bindings), Layout: b.LayoutOf(d.Bindings)}
	for _, k := range d.Bindings {
		if k == driver.UniformDynamic {
			p.Dynamic++
		}
	}
	id, err := b.pipelines.add(p)
	if err != nil {
		return 0, err
	}
	b.counts.pipelines++
	return driver.PipelineID(id), nil
}

// RemovePipeline takes the pipeline out of the books; the caller frees Native.
func (b *Book[B, P, G, Q]) RemovePipeline(id driver.PipelineID) (*Pipeline[P], error) {
	p, err := b.pipelines.get(uint64(id))
	if err != nil {
		return nil, fmt.Errorf("driver: destroy pipeline: %w", err)
	}
	b.pipelines.remove(uint64(id))
	b.counts.pipelines--
	return p, nil
}

// CheckQueries says whether a query set of count stamps can be made.
func (b *Book[B, P, G, Q]) CheckQueries(count uint32) error {
	if b.features&driver.FeatureTimestamps == 0 {
		return fmt.Errorf("driver: create queries: %w", invalid("the device was opened without the feature %v", driver.FeatureTimestamps))
	}
	if count == 0 || count > driver.MaxQueries {
		return fmt.Errorf("driver: create queries: %w", invalid("count: wanted 1 to %d, given %d", driver.MaxQueries, count))
	}
	return nil
}

// AddQueries enters a query set that CheckQueries has passed.
func (b *Book[B, P, G, Q]) AddQueries(count uint32, native Q) (driver.QueryID, error) {
	id, err := b.queries.add(&QuerySet[Q]{Native: native, Count: count})
	if err != nil {
		return 0, err
	}
	b.counts.queries++
	return driver.QueryID(id), nil
}

// RemoveQueries takes the query set out of the books; the caller frees Native.
func (b *Book[B, P, G, Q]) RemoveQueries(id driver.QueryID) (*QuerySet[Q], error) {
	q, err := b.queries.get(uint64(id))
	if err != nil {
		return nil, fmt.Errorf("driver: destroy queries: %w", err)
	}
	b.queries.remove(uint64(id))
	b.counts.queries--
	return q, nil
}
