//go:build cgo && !js && (linux || darwin || windows)

package native

// #include "shim.h"
import "C"

import "github.com/tandem-gpu/tandem/gpu/internal/driver"

func limitsFrom(c *C.WGPULimits) driver.Limits {
	return driver.Limits{
		MaxBufferSize:          uint64(c.maxBufferSize),
		MaxStorageBindingSize:  uint64(c.maxStorageBufferBindingSize),
		MaxUniformBindingSize:  uint64(c.maxUniformBufferBindingSize),
		MaxStorageBuffers:      uint32(c.maxStorageBuffersPerShaderStage),
		MaxUniformBuffers:      uint32(c.maxUniformBuffersPerShaderStage),
		MaxDynamicUniforms:     uint32(c.maxDynamicUniformBuffersPerPipelineLayout),
		MaxBindings:            uint32(c.maxBindingsPerBindGroup),
		MaxBindGroups:          uint32(c.maxBindGroups),
		MaxWorkgroups:          uint32(c.maxComputeWorkgroupsPerDimension),
		MaxInvocations:         uint32(c.maxComputeInvocationsPerWorkgroup),
		MaxWorkgroupSizeX:      uint32(c.maxComputeWorkgroupSizeX),
		MaxWorkgroupSizeY:      uint32(c.maxComputeWorkgroupSizeY),
		MaxWorkgroupSizeZ:      uint32(c.maxComputeWorkgroupSizeZ),
		MaxWorkgroupStorage:    uint32(c.maxComputeWorkgroupStorageSize),
		StorageOffsetAlignment: uint32(c.minStorageBufferOffsetAlignment),
		UniformOffsetAlignment: uint32(c.minUniformBufferOffsetAlignment),
	}
}

// setLimits writes l over the adapter's own limits, so that what has nothing to do with
// compute is asked for as offered. The library takes a zero or a default that the
// adapter lacks for a demand, and refuses the device without saying why.
func setLimits(c *C.WGPULimits, l driver.Limits) {
	c.maxBufferSize = C.uint64_t(l.MaxBufferSize)
	c.maxStorageBufferBindingSize = C.uint64_t(l.MaxStorageBindingSize)
	c.maxUniformBufferBindingSize = C.uint64_t(l.MaxUniformBindingSize)
	c.maxStorageBuffersPerShaderStage = C.uint32_t(l.MaxStorageBuffers)
	c.maxUniformBuffersPerShaderStage = C.uint32_t(l.MaxUniformBuffers)
	c.maxDynamicUniformBuffersPerPipelineLayout = C.uint32_t(l.MaxDynamicUniforms)
	c.maxBindingsPerBindGroup = C.uint32_t(l.MaxBindings)
	c.maxBindGroups = C.uint32_t(l.MaxBindGroups)
	c.maxComputeWorkgroupsPerDimension = C.uint32_t(l.MaxWorkgroups)
	c.maxComputeInvocationsPerWorkgroup = C.uint32_t(l.MaxInvocations)
	c.maxComputeWorkgroupSizeX = C.uint32_t(l.MaxWorkgroupSizeX)
	c.maxComputeWorkgroupSizeY = C.uint32_t(l.MaxWorkgroupSizeY)
	c.maxComputeWorkgroupSizeZ = C.uint32_t(l.MaxWorkgroupSizeZ)
	c.maxComputeWorkgroupStorageSize = C.uint32_t(l.MaxWorkgroupStorage)
	c.minStorageBufferOffsetAlignment = C.uint32_t(l.StorageOffsetAlignment)
	c.minUniformBufferOffsetAlignment = C.uint32_t(l.UniformOffsetAlignment)
}
