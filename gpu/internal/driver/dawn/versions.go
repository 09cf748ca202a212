package dawn

import (
	"fmt"
	"strings"

	"github.com/tandem-gpu/tandem/pass"
)

// A column of the version table is what the versions of one time have in common. The
// interface has no version number: a library belongs to the first column whose marks it
// exports.
type column struct {
	name   string
	marks  []string // functions that only these versions have
	reason string   // why they are refused; empty: they are taken

	features map[feature]uint32
	// The types of extensions of structures.
	togglesType, cacheType, matrixType uint32
	// The features of an instance.
	timedWaits, manyDevices uint32
}

// feature is a feature of an adapter that has a number in the table.
type feature int

const (
	coreFeatures feature = iota
	shaderF16
	subgroups
	subgroupSizes
	subgroupMatrix
	timestampQuery
	implicitSynchronization
	mapExtendedUsages
)

var columns = []column{
	{
		name: "early 2025", marks: []string{"wgpuInstanceRequestAdapter2"},
		reason: "its requests take callbacks in another form, and it has no f16 on NVIDIA devices",
	},
	{
		name: "mid-2025", marks: []string{"wgpuGetInstanceCapabilities"},
		reason: "its instances and features are numbered otherwise, and it has no f16 on NVIDIA devices",
	},
	{
		name: "2026", marks: []string{"wgpuGetInstanceFeatures", "wgpuHasInstanceFeature"},
		features: map[feature]uint32{
			coreFeatures:            0x1,
			shaderF16:               0xb,
			subgroups:               0x12,
			subgroupSizes:           0x17,
			subgroupMatrix:          0x50034,
			timestampQuery:          0x9,
			implicitSynchronization: 0x50004,
			mapExtendedUsages:       0x50013,
		},
		togglesType: 0x5000a, cacheType: 0x50007, matrixType: 0x5003b,
		timedWaits: 1, manyDevices: 3,
	},
}

// columnOf finds the column of a library from the functions that it exports.
func columnOf(exports func(string) bool) (column, error) {
	if !exports(functionNames[createInstance]) {
		return column{}, fmt.Errorf("it has no function %s: not a WebGPU library: %w", functionNames[createInstance], pass.ErrUnsupported)
	}
	if !exports(functionNames[deviceTick]) {
		return column{}, fmt.Errorf("a WebGPU library, but not Dawn: it has no function %s: %w", functionNames[deviceTick], pass.ErrUnsupported)
	}
	for _, c := range columns {
		if !all(c.marks, exports) {
			continue
		}
		if c.reason != "" {
			return column{}, fmt.Errorf("a Dawn library of %s (it has the function %s), which is not taken: %s; want one of 2026: %w",
				c.name, c.marks[0], c.reason, pass.ErrUnsupported)
		}
		var missing []string
		for _, name := range functionNames {
			if !exports(name) {
				missing = append(missing, name)
			}
		}
		if missing != nil {
			return column{}, fmt.Errorf("a Dawn library of %s without %s: %w", c.name, strings.Join(missing, ", "), pass.ErrUnsupported)
		}
		return c, nil
	}
	return column{}, fmt.Errorf("a Dawn library of an unknown version: %w", pass.ErrUnsupported)
}

func all(names []string, have func(string) bool) bool {
	for _, name := range names {
		if !have(name) {
			return false
		}
	}
	return true
}
