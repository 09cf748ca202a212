//go:build ((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64)

package dawn

import (
	"fmt"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// trials are texts that compile only where the feature is really on: the feature's
// number in the table is then right for this library.
var trials = []struct {
	feature driver.Feature
	source  string
}{
	{driver.FeatureF16, "enable f16;\nvar<private> x: f16;"},
	{driver.FeatureSubgroups, "enable subgroups;\n@compute @workgroup_size(32) fn main() { _ = subgroupAdd(1u); }"},
	{driver.FeatureSubgroupSizes, "enable subgroups;\nenable subgroup_size_control;"},
	{driver.FeatureSubgroupMatrix, "enable subgroups;\nenable chromium_experimental_subgroup_matrix;"},
}

// tryFeatures tries every feature that was asked for.
func (d *device) tryFeatures(features driver.Feature) error {
	for _, t := range trials {
		if features&t.feature == 0 {
			continue
		}
		m, err := d.module("trial of "+t.feature.String(), t.source)
		if err != nil {
			return fmt.Errorf("library %s: feature %v was granted but does not work: %w: %w", d.path, t.feature, err, pass.ErrUnsupported)
		}
		d.call(shaderModuleRelease, m)
	}
	if features&driver.FeatureTimestamps != 0 {
		q, err := d.querySet(2)
		if err != nil {
			return fmt.Errorf("library %s: feature %v was granted but does not work: %w: %w", d.path, driver.FeatureTimestamps, err, pass.ErrUnsupported)
		}
		d.call(querySetRelease, q)
	}
	return nil
}
