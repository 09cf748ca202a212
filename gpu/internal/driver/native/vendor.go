//go:build cgo && !js && (linux || darwin || windows)

package native

import (
	"fmt"
	"strings"

	"github.com/cogentcore/webgpu/wgpu"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
)

// names picks the device's name and the driver's description. One version of the
// library puts a number into Name and the name into DriverDescription; the next
// puts each in its place.
func names(info wgpu.AdapterInfo) (name, description string) {
	if info.Name == "" || strings.HasPrefix(info.Name, "0x") {
		name = info.DriverDescription
	} else {
		name, description = info.Name, info.DriverDescription
	}
	if name == "" {
		name = fmt.Sprintf("%s device %#x", driver.VendorName(info.VendorId), info.DeviceId)
	}
	return strings.TrimSpace(name), strings.TrimSpace(description)
}

func apiOf(b wgpu.BackendType) driver.API {
	switch b {
	case wgpu.BackendTypeVulkan:
		return driver.Vulkan
	case wgpu.BackendTypeMetal:
		return driver.Metal
	case wgpu.BackendTypeD3D12:
		return driver.D3D12
	}
	return driver.OtherAPI
}

// typeOf sorts adapters. The library has no word for a virtual GPU and may call it a
// processor; a processor of a vendor who makes no software implementation is one.
func typeOf(info wgpu.AdapterInfo) driver.AdapterType {
	switch info.AdapterType {
	case wgpu.AdapterTypeDiscreteGPU:
		return driver.Discrete
	case wgpu.AdapterTypeIntegratedGPU:
		return driver.Integrated
	case wgpu.AdapterTypeCPU:
		switch info.VendorId {
		case 0x1002, 0x106b, 0x10de, 0x5143:
			return driver.Virtual
		}
		return driver.CPU
	}
	return driver.Unknown
}
