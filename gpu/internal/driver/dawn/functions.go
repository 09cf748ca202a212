package dawn

// function numbers the functions of the library that are called.
type function int

const (
	createInstance function = iota
	hasInstanceFeature
	instanceAddRef
	instanceRelease
	instanceRequestAdapter
	instanceWaitAny
	instanceProcessEvents

	adapterGetInfo
	adapterInfoFreeMembers
	matrixConfigsFreeMembers
	adapterGetLimits
	adapterHasFeature
	adapterRequestDevice
	adapterRelease

	deviceGetQueue
	deviceTick
	deviceDestroy
	deviceRelease
	devicePushErrorScope
	devicePopErrorScope
	deviceCreateBuffer
	deviceCreateBindGroupLayout
	deviceCreatePipelineLayout
	deviceCreateShaderModule
	deviceCreatePipelineAsync
	deviceCreateBindGroup
	deviceCreateQuerySet
	deviceCreateEncoder

	bufferMapAsync
	bufferGetMappedRange
	bufferGetConstMappedRange
	bufferUnmap
	bufferDestroy
	bufferRelease

	bindGroupLayoutRelease
	bindGroupRelease
	pipelineLayoutRelease
	shaderModuleRelease
	pipelineRelease
	querySetDestroy
	querySetRelease

	queueSubmit
	queueWriteBuffer
	queueOnSubmittedWorkDone
	queueRelease

	encoderBeginPass
	encoderCopy
	encoderClear
	encoderTimestamp
	encoderResolve
	encoderFinish
	encoderRelease
	commandBufferRelease

	passSetPipeline
	passSetBindGroup
	passDispatch
	passEnd
	passRelease

	functionCount
)

// functionNames are their names in the library. All of them must be there.
var functionNames = [functionCount]string{
	createInstance:         "wgpuCreateInstance",
	hasInstanceFeature:     "wgpuHasInstanceFeature",
	instanceAddRef:         "wgpuInstanceAddRef",
	instanceRelease:        "wgpuInstanceRelease",
	instanceRequestAdapter: "wgpuInstanceRequestAdapter",
	instanceWaitAny:        "wgpuInstanceWaitAny",
	instanceProcessEvents:  "wgpuInstanceProcessEvents",

	adapterGetInfo:           "wgpuAdapterGetInfo",
	adapterInfoFreeMembers:   "wgpuAdapterInfoFreeMembers",
	matrixConfigsFreeMembers: "wgpuAdapterPropertiesSubgroupMatrixConfigsFreeMembers",
	adapterGetLimits:         "wgpuAdapterGetLimits",
	adapterHasFeature:        "wgpuAdapterHasFeature",
	adapterRequestDevice:     "wgpuAdapterRequestDevice",
	adapterRelease:           "wgpuAdapterRelease",

	deviceGetQueue:              "wgpuDeviceGetQueue",
	deviceTick:                  "wgpuDeviceTick",
	deviceDestroy:               "wgpuDeviceDestroy",
	deviceRelease:               "wgpuDeviceRelease",
	devicePushErrorScope:        "wgpuDevicePushErrorScope",
	devicePopErrorScope:         "wgpuDevicePopErrorScope",
	deviceCreateBuffer:          "wgpuDeviceCreateBuffer",
	deviceCreateBindGroupLayout: "wgpuDeviceCreateBindGroupLayout",
	deviceCreatePipelineLayout:  "wgpuDeviceCreatePipelineLayout",
	deviceCreateShaderModule:    "wgpuDeviceCreateShaderModule",
	deviceCreatePipelineAsync:   "wgpuDeviceCreateComputePipelineAsync",
	deviceCreateBindGroup:       "wgpuDeviceCreateBindGroup",
	deviceCreateQuerySet:        "wgpuDeviceCreateQuerySet",
	deviceCreateEncoder:         "wgpuDeviceCreateCommandEncoder",

	bufferMapAsync:            "wgpuBufferMapAsync",
	bufferGetMappedRange:      "wgpuBufferGetMappedRange",
	bufferGetConstMappedRange: "wgpuBufferGetConstMappedRange",
	bufferUnmap:               "wgpuBufferUnmap",
	bufferDestroy:             "wgpuBufferDestroy",
	bufferRelease:             "wgpuBufferRelease",

	bindGroupLayoutRelease: "wgpuBindGroupLayoutRelease",
	bindGroupRelease:       "wgpuBindGroupRelease",
	pipelineLayoutRelease:  "wgpuPipelineLayoutRelease",
	shaderModuleRelease:    "wgpuShaderModuleRelease",
	pipelineRelease:        "wgpuComputePipelineRelease",
	querySetDestroy:        "wgpuQuerySetDestroy",
	querySetRelease:        "wgpuQuerySetRelease",

	queueSubmit:              "wgpuQueueSubmit",
	queueWriteBuffer:         "wgpuQueueWriteBuffer",
	queueOnSubmittedWorkDone: "wgpuQueueOnSubmittedWorkDone",
	queueRelease:             "wgpuQueueRelease",

	encoderBeginPass:     "wgpuCommandEncoderBeginComputePass",
	encoderCopy:          "wgpuCommandEncoderCopyBufferToBuffer",
	encoderClear:         "wgpuCommandEncoderClearBuffer",
	encoderTimestamp:     "wgpuCommandEncoderWriteTimestamp",
	encoderResolve:       "wgpuCommandEncoderResolveQuerySet",
	encoderFinish:        "wgpuCommandEncoderFinish",
	encoderRelease:       "wgpuCommandEncoderRelease",
	commandBufferRelease: "wgpuCommandBufferRelease",

	passSetPipeline:  "wgpuComputePassEncoderSetPipeline",
	passSetBindGroup: "wgpuComputePassEncoderSetBindGroup",
	passDispatch:     "wgpuComputePassEncoderDispatchWorkgroups",
	passEnd:          "wgpuComputePassEncoderEnd",
	passRelease:      "wgpuComputePassEncoderRelease",
}
