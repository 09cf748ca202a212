package dawn

import "github.com/tandem-gpu/tandem/gpu/internal/driver"

func (l *limits) toDriver() driver.Limits {
	return driver.Limits{
		MaxBufferSize:          l.maxBufferSize,
		MaxStorageBindingSize:  l.maxStorageBufferBindingSize,
		MaxUniformBindingSize:  l.maxUniformBufferBindingSize,
		MaxStorageBuffers:      l.maxStorageBuffersPerShaderStage,
		MaxUniformBuffers:      l.maxUniformBuffersPerShaderStage,
		MaxDynamicUniforms:     l.maxDynamicUniformBuffersPerPipelineLayout,
		MaxBindings:            l.maxBindingsPerBindGroup,
		MaxBindGroups:          l.maxBindGroups,
		MaxWorkgroups:          l.maxComputeWorkgroupsPerDimension,
		MaxInvocations:         l.maxComputeInvocationsPerWorkgroup,
		MaxWorkgroupSizeX:      l.maxComputeWorkgroupSizeX,
		MaxWorkgroupSizeY:      l.maxComputeWorkgroupSizeY,
		MaxWorkgroupSizeZ:      l.maxComputeWorkgroupSizeZ,
		MaxWorkgroupStorage:    l.maxComputeWorkgroupStorageSize,
		StorageOffsetAlignment: l.minStorageBufferOffsetAlignment,
		UniformOffsetAlignment: l.minUniformBufferOffsetAlignment,
	}
}

// fill writes d over the adapter's own limits, so that what has nothing to do with
// compute is asked for as offered.
func (l *limits) fill(d driver.Limits) {
	l.maxBufferSize = d.MaxBufferSize
	l.maxStorageBufferBindingSize = d.MaxStorageBindingSize
	l.maxUniformBufferBindingSize = d.MaxUniformBindingSize
	l.maxStorageBuffersPerShaderStage = d.MaxStorageBuffers
	l.maxUniformBuffersPerShaderStage = d.MaxUniformBuffers
	l.maxDynamicUniformBuffersPerPipelineLayout = d.MaxDynamicUniforms
	l.maxBindingsPerBindGroup = d.MaxBindings
	l.maxBindGroups = d.MaxBindGroups
	l.maxComputeWorkgroupsPerDimension = d.MaxWorkgroups
	l.maxComputeInvocationsPerWorkgroup = d.MaxInvocations
	l.maxComputeWorkgroupSizeX = d.MaxWorkgroupSizeX
	l.maxComputeWorkgroupSizeY = d.MaxWorkgroupSizeY
	l.maxComputeWorkgroupSizeZ = d.MaxWorkgroupSizeZ
	l.maxComputeWorkgroupStorageSize = d.MaxWorkgroupStorage
	l.minStorageBufferOffsetAlignment = d.StorageOffsetAlignment
	l.minUniformBufferOffsetAlignment = d.UniformOffsetAlignment
}
