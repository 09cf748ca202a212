//go:build ((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64)

package dawn

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
)

type adapter struct {
	driver.Adapter
	wish   wish
	handle handle
}

// offered are the features of the seam with those of the library that each needs.
var offered = []struct {
	feature driver.Feature
	needs   []feature
}{
	{driver.FeatureTimestamps, []feature{timestampQuery}},
	{driver.FeatureMappedStorage, []feature{mapExtendedUsages}},
	{driver.FeatureF16, []feature{shaderF16}},
	{driver.FeatureSubgroups, []feature{subgroups}},
	{driver.FeatureSubgroupSizes, []feature{subgroups, subgroupSizes}},
	{driver.FeatureSubgroupMatrix, []feature{subgroups, subgroupMatrix}},
}

// describe asks an adapter for all about it.
func (l *library) describe(h handle) (adapter, error) {
	has := func(f feature) bool { return l.boolean(adapterHasFeature, h, uintptr(l.features[f])) }
	if !has(coreFeatures) || !has(implicitSynchronization) {
		return adapter{}, fmt.Errorf("library %s: an adapter without features that all have: the library numbers them in an unknown way", l.path)
	}
	a := adapter{handle: h}
	for _, o := range offered {
		if a.Features |= o.feature; !allOf(o.needs, has) {
			a.Features &^= o.feature
		}
	}
	var matrices matrixConfigs
	info := &adapterInfo{}
	if a.Features&driver.FeatureSubgroupMatrix != 0 {
		// Without the feature the library refuses the whole call.
		matrices.sType = l.matrixType
		info.next = unsafe.Pointer(&matrices)
	}
	if uint32(l.call(adapterGetInfo, h, uintptr(unsafe.Pointer(info)))) != statusSuccess {
		return adapter{}, fmt.Errorf("library %s: an adapter has no description", l.path)
	}
	defer l.freeInfo(info, &matrices)
	a.fill(info)
	if a.Features&driver.FeatureSubgroupMatrix != 0 {
		read := func(n int) []byte { return unsafe.Slice((*byte)(matrices.entries), n) }
		list, _, err := decodeMatrices(int(matrices.count), read, info.minSubgroup, info.maxSubgroup)
		if a.Matrices = list; err != nil || len(list) == 0 {
			a.Features &^= driver.FeatureSubgroupMatrix
		}
	}
	var offered limits
	if uint32(l.call(adapterGetLimits, h, uintptr(unsafe.Pointer(&offered)))) != statusSuccess {
		return adapter{}, fmt.Errorf("library %s: %s has no limits", l.path, a.Name)
	}
	a.Limits = offered.toDriver()
	return a, nil
}

// fill copies what the library's description says.
func (a *adapter) fill(info *adapterInfo) {
	a.Vendor, a.VendorID, a.DeviceID = driver.VendorName(info.vendorID), info.vendorID, info.deviceID
	a.API, a.Type = apiOf(info.backend), typeOf(info.kind, info.vendorID)
	a.Name, a.Driver = strings.TrimSpace(info.device.String()), strings.TrimSpace(info.description.String())
	if a.Name == "" {
		a.Name = fmt.Sprintf("%s device %#x", a.Vendor, a.DeviceID)
	}
	a.MinSubgroup, a.MaxSubgroup = info.minSubgroup, info.maxSubgroup
}

// freeInfo gives back what a description holds. Structures of more than two words
// travel by value on the stack on amd64 and as an address elsewhere.
func (l *library) freeInfo(info *adapterInfo, matrices *matrixConfigs) {
	info.next = nil
	l.callWith(adapterInfoFreeMembers, unsafe.Pointer(info), unsafe.Sizeof(*info))
	if matrices.entries != nil {
		l.callWith(matrixConfigsFreeMembers, unsafe.Pointer(matrices), unsafe.Sizeof(*matrices))
	}
}

func allOf(list []feature, have func(feature) bool) bool {
	for _, f := range list {
		if !have(f) {
			return false
		}
	}
	return true
}

func apiOf(backend uint32) driver.API {
	switch backend {
	case backendVulkan:
		return driver.Vulkan
	case backendMetal:
		return driver.Metal
	case backendD3D12:
		return driver.D3D12
	}
	return driver.OtherAPI
}

// typeOf sorts adapters. The library has no word for a virtual GPU and may call it a
// processor; a processor of a vendor who makes no software implementation is one.
func typeOf(kind, vendor uint32) driver.AdapterType {
	switch kind {
	case 1:
		return driver.Discrete
	case 2:
		return driver.Integrated
	case 3:
		switch vendor {
		case 0x1002, 0x106b, 0x10de, 0x5143:
			return driver.Virtual
		}
		return driver.CPU
	}
	return driver.Unknown
}
