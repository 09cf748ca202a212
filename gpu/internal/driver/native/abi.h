// The part of the native library's C interface that the shim calls, declared anew
// because the binding's header cannot be reached from another module. A test compares
// every structure, constant and prototype here with that header.
#ifndef TANDEM_ABI_H
#define TANDEM_ABI_H

#include <stddef.h>
#include <stdint.h>

// The test includes the library's header first; these would then be duplicates.
#ifndef WGPU_H_

typedef struct WGPUInstanceImpl *WGPUInstance;
typedef struct WGPUAdapterImpl *WGPUAdapter;
typedef struct WGPUDeviceImpl *WGPUDevice;
typedef struct WGPUQueueImpl *WGPUQueue;
typedef struct WGPUBufferImpl *WGPUBuffer;
typedef struct WGPUBindGroupImpl *WGPUBindGroup;
typedef struct WGPUComputePipelineImpl *WGPUComputePipeline;
typedef struct WGPUQuerySetImpl *WGPUQuerySet;
typedef struct WGPUCommandEncoderImpl *WGPUCommandEncoder;
typedef struct WGPUCommandBufferImpl *WGPUCommandBuffer;
typedef struct WGPUComputePassEncoderImpl *WGPUComputePassEncoder;

typedef uint32_t WGPUFlags;
typedef uint32_t WGPUBool;
typedef uint32_t WGPUMapModeFlags;
typedef uint64_t WGPUSubmissionIndex;

typedef enum { WGPUDeviceLostReason_Unknown = 1, WGPUDeviceLostReason_Destroyed = 2, WGPUDeviceLostReason_Force32 = 0x7FFFFFFF } WGPUDeviceLostReason;
typedef enum { WGPUErrorFilter_Validation = 0, WGPUErrorFilter_OutOfMemory = 1, WGPUErrorFilter_Force32 = 0x7FFFFFFF } WGPUErrorFilter;
typedef enum {
	WGPUErrorType_NoError = 0,
	WGPUErrorType_Validation = 1,
	WGPUErrorType_OutOfMemory = 2,
	WGPUErrorType_Internal = 3,
	WGPUErrorType_Unknown = 4,
	WGPUErrorType_DeviceLost = 5,
	WGPUErrorType_Force32 = 0x7FFFFFFF
} WGPUErrorType;
typedef enum { WGPUBufferMapAsyncStatus_Success = 0, WGPUBufferMapAsyncStatus_DeviceLost = 3, WGPUBufferMapAsyncStatus_Force32 = 0x7FFFFFFF } WGPUBufferMapAsyncStatus;
typedef enum { WGPUQueueWorkDoneStatus_Success = 0, WGPUQueueWorkDoneStatus_Force32 = 0x7FFFFFFF } WGPUQueueWorkDoneStatus;
typedef enum { WGPURequestDeviceStatus_Success = 0, WGPURequestDeviceStatus_Force32 = 0x7FFFFFFF } WGPURequestDeviceStatus;
typedef enum { WGPUSType_Invalid = 0, WGPUSType_Force32 = 0x7FFFFFFF } WGPUSType;
typedef enum { WGPUFeatureName_Undefined = 0, WGPUFeatureName_Force32 = 0x7FFFFFFF } WGPUFeatureName;
enum { WGPUSType_InstanceExtras = 0x00030006 };
enum { WGPUMapMode_Read = 1, WGPUMapMode_Write = 2 };
typedef enum { WGPUDx12Compiler_Undefined = 0, WGPUDx12Compiler_Force32 = 0x7FFFFFFF } WGPUDx12Compiler;
typedef enum { WGPUGles3MinorVersion_Automatic = 0, WGPUGles3MinorVersion_Force32 = 0x7FFFFFFF } WGPUGles3MinorVersion;

typedef void (*WGPUDeviceLostCallback)(WGPUDeviceLostReason reason, char const *message, void *userdata);
typedef void (*WGPUErrorCallback)(WGPUErrorType type, char const *message, void *userdata);
typedef void (*WGPUBufferMapAsyncCallback)(WGPUBufferMapAsyncStatus status, void *userdata);
typedef void (*WGPUQueueOnSubmittedWorkDoneCallback)(WGPUQueueWorkDoneStatus status, void *userdata);
typedef void (*WGPUAdapterRequestDeviceCallback)(WGPURequestDeviceStatus status, WGPUDevice device, char const *message, void *userdata);

typedef struct WGPUChainedStruct {
	struct WGPUChainedStruct const *next;
	WGPUSType sType;
} WGPUChainedStruct;

typedef struct WGPUChainedStructOut {
	struct WGPUChainedStructOut *next;
	WGPUSType sType;
} WGPUChainedStructOut;

typedef struct WGPUInstanceDescriptor {
	WGPUChainedStruct const *nextInChain;
} WGPUInstanceDescriptor;

typedef struct WGPUInstanceExtras {
	WGPUChainedStruct chain;
	WGPUFlags backends;
	WGPUFlags flags;
	WGPUDx12Compiler dx12ShaderCompiler;
	WGPUGles3MinorVersion gles3MinorVersion;
	char const *dxilPath;
	char const *dxcPath;
} WGPUInstanceExtras;

typedef struct WGPULimits {
	uint32_t maxTextureDimension1D;
	uint32_t maxTextureDimension2D;
	uint32_t maxTextureDimension3D;
	uint32_t maxTextureArrayLayers;
	uint32_t maxBindGroups;
	uint32_t maxBindGroupsPlusVertexBuffers;
	uint32_t maxBindingsPerBindGroup;
	uint32_t maxDynamicUniformBuffersPerPipelineLayout;
	uint32_t maxDynamicStorageBuffersPerPipelineLayout;
	uint32_t maxSampledTexturesPerShaderStage;
	uint32_t maxSamplersPerShaderStage;
	uint32_t maxStorageBuffersPerShaderStage;
	uint32_t maxStorageTexturesPerShaderStage;
	uint32_t maxUniformBuffersPerShaderStage;
	uint64_t maxUniformBufferBindingSize;
	uint64_t maxStorageBufferBindingSize;
	uint32_t minUniformBufferOffsetAlignment;
	uint32_t minStorageBufferOffsetAlignment;
	uint32_t maxVertexBuffers;
	uint64_t maxBufferSize;
	uint32_t maxVertexAttributes;
	uint32_t maxVertexBufferArrayStride;
	uint32_t maxInterStageShaderComponents;
	uint32_t maxInterStageShaderVariables;
	uint32_t maxColorAttachments;
	uint32_t maxColorAttachmentBytesPerSample;
	uint32_t maxComputeWorkgroupStorageSize;
	uint32_t maxComputeInvocationsPerWorkgroup;
	uint32_t maxComputeWorkgroupSizeX;
	uint32_t maxComputeWorkgroupSizeY;
	uint32_t maxComputeWorkgroupSizeZ;
	uint32_t maxComputeWorkgroupsPerDimension;
} WGPULimits;

typedef struct WGPUSupportedLimits {
	WGPUChainedStructOut *nextInChain;
	WGPULimits limits;
} WGPUSupportedLimits;

typedef struct WGPURequiredLimits {
	WGPUChainedStruct const *nextInChain;
	WGPULimits limits;
} WGPURequiredLimits;

typedef struct WGPUQueueDescriptor {
	WGPUChainedStruct const *nextInChain;
	char const *label;
} WGPUQueueDescriptor;

typedef struct WGPUUncapturedErrorCallbackInfo {
	WGPUChainedStruct const *nextInChain;
	WGPUErrorCallback callback;
	void *userdata;
} WGPUUncapturedErrorCallbackInfo;

typedef struct WGPUDeviceDescriptor {
	WGPUChainedStruct const *nextInChain;
	char const *label;
	size_t requiredFeatureCount;
	WGPUFeatureName const *requiredFeatures;
	WGPURequiredLimits const *requiredLimits;
	WGPUQueueDescriptor defaultQueue;
	WGPUDeviceLostCallback deviceLostCallback;
	void *deviceLostUserdata;
	WGPUUncapturedErrorCallbackInfo uncapturedErrorCallbackInfo;
} WGPUDeviceDescriptor;

// Never looked into here.
typedef struct WGPUComputePassDescriptor WGPUComputePassDescriptor;
typedef struct WGPUCommandEncoderDescriptor WGPUCommandEncoderDescriptor;
typedef struct WGPUCommandBufferDescriptor WGPUCommandBufferDescriptor;
typedef struct WGPUWrappedSubmissionIndex WGPUWrappedSubmissionIndex;

#endif // WGPU_H_

extern WGPUInstance wgpuCreateInstance(WGPUInstanceDescriptor const *descriptor);
extern WGPUBool wgpuAdapterGetLimits(WGPUAdapter adapter, WGPUSupportedLimits *limits);
extern void wgpuAdapterRequestDevice(WGPUAdapter adapter, WGPUDeviceDescriptor const *descriptor, WGPUAdapterRequestDeviceCallback callback, void *userdata);
extern WGPUQueue wgpuDeviceGetQueue(WGPUDevice device);
extern void wgpuDevicePushErrorScope(WGPUDevice device, WGPUErrorFilter filter);
extern void wgpuDevicePopErrorScope(WGPUDevice device, WGPUErrorCallback callback, void *userdata);
extern WGPUBool wgpuDevicePoll(WGPUDevice device, WGPUBool wait, WGPUWrappedSubmissionIndex const *index);
extern void wgpuDeviceRelease(WGPUDevice device);
extern void wgpuQueueRelease(WGPUQueue queue);
extern void wgpuQueueWriteBuffer(WGPUQueue queue, WGPUBuffer buffer, uint64_t offset, void const *data, size_t size);
extern WGPUSubmissionIndex wgpuQueueSubmitForIndex(WGPUQueue queue, size_t count, WGPUCommandBuffer const *commands);
extern void wgpuQueueOnSubmittedWorkDone(WGPUQueue queue, WGPUQueueOnSubmittedWorkDoneCallback callback, void *userdata);
extern void wgpuBufferMapAsync(WGPUBuffer buffer, WGPUMapModeFlags mode, size_t offset, size_t size, WGPUBufferMapAsyncCallback callback, void *userdata);
extern void *wgpuBufferGetMappedRange(WGPUBuffer buffer, size_t offset, size_t size);
extern void wgpuBufferUnmap(WGPUBuffer buffer);
extern WGPUCommandEncoder wgpuDeviceCreateCommandEncoder(WGPUDevice device, WGPUCommandEncoderDescriptor const *descriptor);
extern WGPUComputePassEncoder wgpuCommandEncoderBeginComputePass(WGPUCommandEncoder encoder, WGPUComputePassDescriptor const *descriptor);
extern void wgpuCommandEncoderCopyBufferToBuffer(WGPUCommandEncoder encoder, WGPUBuffer source, uint64_t sourceOffset, WGPUBuffer destination, uint64_t destinationOffset, uint64_t size);
extern void wgpuCommandEncoderClearBuffer(WGPUCommandEncoder encoder, WGPUBuffer buffer, uint64_t offset, uint64_t size);
extern void wgpuCommandEncoderWriteTimestamp(WGPUCommandEncoder encoder, WGPUQuerySet set, uint32_t index);
extern void wgpuCommandEncoderResolveQuerySet(WGPUCommandEncoder encoder, WGPUQuerySet set, uint32_t first, uint32_t count, WGPUBuffer destination, uint64_t offset);
extern WGPUCommandBuffer wgpuCommandEncoderFinish(WGPUCommandEncoder encoder, WGPUCommandBufferDescriptor const *descriptor);
extern void wgpuCommandEncoderRelease(WGPUCommandEncoder encoder);
extern void wgpuCommandBufferRelease(WGPUCommandBuffer buffer);
extern void wgpuComputePassEncoderSetPipeline(WGPUComputePassEncoder pass, WGPUComputePipeline pipeline);
extern void wgpuComputePassEncoderSetBindGroup(WGPUComputePassEncoder pass, uint32_t index, WGPUBindGroup group, size_t count, uint32_t const *offsets);
extern void wgpuComputePassEncoderDispatchWorkgroups(WGPUComputePassEncoder pass, uint32_t x, uint32_t y, uint32_t z);
extern void wgpuComputePassEncoderEnd(WGPUComputePassEncoder pass);
extern void wgpuComputePassEncoderRelease(WGPUComputePassEncoder pass);

#endif // TANDEM_ABI_H
