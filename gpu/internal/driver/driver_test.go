package driver_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

func TestGrant(t *testing.T) {
	t.Parallel()
	a := driver.Adapter{Name: "card", API: driver.Vulkan, Limits: drivertest.DefaultLimits(), Features: driver.FeatureTimestamps}
	limits, features, err := a.Grant(driver.DeviceConfig{})
	require.NoError(t, err)
	require.Equal(t, a.Limits, limits, "the adapter's own where nothing is asked")
	require.Zero(t, features, "none unless asked")

	low := driver.Limits{MaxWorkgroups: 16, MaxBufferSize: 1 << 20, StorageOffsetAlignment: 512}
	limits, features, err = a.Grant(driver.DeviceConfig{Limits: low, Features: driver.FeatureTimestamps})
	require.NoError(t, err)
	require.Equal(t, a.Limits.Override(low), limits)
	require.Equal(t, driver.FeatureTimestamps, features)

	_, _, err = a.Grant(driver.DeviceConfig{
		Limits:   driver.Limits{MaxWorkgroups: 70000, StorageOffsetAlignment: 32, MaxInvocations: 256},
		Features: driver.FeatureF16 | driver.FeatureTimestamps,
	})
	require.ErrorIs(t, err, pass.ErrUnsupported)
	require.EqualError(t, err, "driver: open card (vulkan): MaxWorkgroups wanted 70000, offered 65535; "+
		"StorageOffsetAlignment wanted 32, offered 256; features wanted timestamps,f16, offered timestamps: unsupported")

	_, _, err = a.Grant(driver.DeviceConfig{Limits: driver.Limits{UniformOffsetAlignment: 300}})
	require.ErrorIs(t, err, pass.ErrInvalid, "no power of two")
}

// Every limit takes part in Grant and Override.
func TestEveryLimit(t *testing.T) {
	t.Parallel()
	typ := reflect.TypeFor[driver.Limits]()
	for i := range typ.NumField() {
		var low, none driver.Limits
		field := reflect.ValueOf(&low).Elem().Field(i)
		field.SetUint(8)
		require.Equal(t, low, none.Override(low), typ.Field(i).Name)
		require.Equal(t, low, low.Override(none), typ.Field(i).Name)
		// Alignments are lower bounds: less than offered is too much to ask.
		name := typ.Field(i).Name
		if name != "StorageOffsetAlignment" && name != "UniformOffsetAlignment" {
			field.SetUint(1 << 31)
		}
		_, _, err := driver.Adapter{Limits: drivertest.DefaultLimits()}.Grant(driver.DeviceConfig{Limits: low})
		require.ErrorIs(t, err, pass.ErrUnsupported, name)
		require.ErrorContains(t, err, name)
	}
}

func TestStrings(t *testing.T) {
	t.Parallel()
	require.Equal(t, "none", driver.Feature(0).String())
	require.Equal(t, "timestamps,mapped-storage,f16,subgroups", (driver.FeatureTimestamps | driver.FeatureMappedStorage | driver.FeatureF16 | driver.FeatureSubgroups).String())
	require.Equal(t, "timestamps,unknown(0x80)", (driver.FeatureTimestamps | 0x80).String())
	require.Equal(t, "map-read|copy-dst", (driver.MapRead | driver.CopyDst).String())
	require.Equal(t, "map-read|map-write|copy-src|copy-dst|storage|uniform|resolve", driver.AllUsages.String())
	require.Equal(t, "uniform-dynamic", driver.UniformDynamic.String())
	require.Equal(t, "unknown", driver.BindingKind(0).String())
}

// Offsets that do not fit are counted, so that Submit refuses the command.
func TestDispatchOffsets(t *testing.T) {
	c := driver.Dispatch(1, 2, 3, 4, 5, 6, 7)
	require.Equal(t, driver.Command{Op: driver.OpDispatch, Pipeline: 1, Group: 2, X: 3, Y: 4, Z: 5, Dynamic: 2, Offsets: [4]uint32{6, 7}}, c)
	c = driver.Dispatch(1, 2, 3, 4, 5, make([]uint32, 300)...)
	require.EqualValues(t, driver.MaxDynamic+1, c.Dynamic)
	require.Zero(t, testing.AllocsPerRun(10, func() { c = driver.Dispatch(1, 2, 3, 4, 5, 6, 7) }))
}
