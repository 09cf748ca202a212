//go:build cgo && !js && (linux || darwin || windows)

package native

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/cogentcore/webgpu/wgpu"
	"github.com/stretchr/testify/require"
)

// The shim reads handles out of the binding's structs. When the binding changes them
// this fails, instead of the process.
func TestBindingStructs(t *testing.T) {
	t.Parallel()
	for _, object := range []any{
		wgpu.Instance{}, wgpu.Adapter{}, wgpu.Device{}, wgpu.ComputePipeline{}, wgpu.BindGroup{}, wgpu.QuerySet{},
	} {
		checkFields(t, reflect.TypeOf(object), "ref")
	}
	checkFields(t, reflect.TypeFor[wgpu.Buffer](), "deviceRef", "ref")
	require.Equal(t, unsafe.Sizeof(oneHandle{}), unsafe.Sizeof(wgpu.Device{}))
	require.Equal(t, unsafe.Sizeof(bufferHandle{}), unsafe.Sizeof(wgpu.Buffer{}))
}

func checkFields(t *testing.T, typ reflect.Type, names ...string) {
	t.Helper()
	require.Equal(t, len(names), typ.NumField(), "fields of %v", typ)
	for i, name := range names {
		f := typ.Field(i)
		require.Equal(t, name, f.Name, "field %d of %v", i, typ)
		require.Equal(t, uintptr(i)*unsafe.Sizeof(uintptr(0)), f.Offset, "offset of %v.%s", typ, name)
		require.Equal(t, reflect.Pointer, f.Type.Kind(), "kind of %v.%s", typ, name)
	}
}

// The shim declares the library's C interface anew. A C compiler compares structures,
// constants and prototypes with the header that the binding was built with.
func TestHeader(t *testing.T) {
	t.Parallel()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler named cc")
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/cogentcore/webgpu").Output()
	if err != nil {
		t.Skipf("the binding's sources are not at hand: %v", err)
	}
	headers := filepath.Join(strings.TrimSpace(string(out)), "wgpu", "lib")
	here, err := os.Getwd()
	require.NoError(t, err)
	dir := t.TempDir()
	source := filepath.Join(dir, "layout.c")
	require.NoError(t, os.WriteFile(source, []byte(layoutSource), 0o600))

	print := func(args ...string) string {
		t.Helper()
		program := filepath.Join(dir, "layout")
		// Two declarations of a function that differ do not compile.
		build := exec.Command(cc, append([]string{"-std=c11", "-Werror", "-I", here, "-I", headers, "-o", program, source}, args...)...)
		text, err := build.CombinedOutput()
		require.NoError(t, err, "%s", text)
		text, err = exec.Command(program).Output()
		require.NoError(t, err)
		return string(text)
	}
	ours, theirs := print(), print("-DTHEIRS")
	require.Contains(t, ours, "WGPUDeviceDescriptor.uncapturedErrorCallbackInfo")
	require.Equal(t, theirs, ours)
}

const layoutSource = `
#include <stdio.h>
#ifdef THEIRS
#include "wgpu.h"
#endif
#include "abi.h"
#define SIZE(t) printf("%s %zu\n", #t, sizeof(t))
#define AT(t, f) printf("%s.%s %zu %zu\n", #t, #f, offsetof(t, f), sizeof(((t *)0)->f))
#define IS(c) printf("%s %ld\n", #c, (long)(c))
int main(void)
{
	SIZE(WGPUInstance); SIZE(WGPUBuffer); SIZE(WGPUFlags); SIZE(WGPUBool); SIZE(WGPUMapModeFlags); SIZE(WGPUSubmissionIndex);
	SIZE(WGPUErrorFilter); SIZE(WGPUErrorType); SIZE(WGPUBufferMapAsyncStatus); SIZE(WGPUQueueWorkDoneStatus);
	SIZE(WGPURequestDeviceStatus); SIZE(WGPUDeviceLostReason); SIZE(WGPUSType); SIZE(WGPUFeatureName);
	SIZE(WGPUChainedStruct); AT(WGPUChainedStruct, next); AT(WGPUChainedStruct, sType);
	SIZE(WGPUChainedStructOut); AT(WGPUChainedStructOut, next); AT(WGPUChainedStructOut, sType);
	SIZE(WGPUInstanceDescriptor); AT(WGPUInstanceDescriptor, nextInChain);
	SIZE(WGPUInstanceExtras); AT(WGPUInstanceExtras, backends); AT(WGPUInstanceExtras, flags);
	AT(WGPUInstanceExtras, dx12ShaderCompiler); AT(WGPUInstanceExtras, gles3MinorVersion);
	AT(WGPUInstanceExtras, dxilPath); AT(WGPUInstanceExtras, dxcPath);
	SIZE(WGPUSupportedLimits); AT(WGPUSupportedLimits, limits);
	SIZE(WGPURequiredLimits); AT(WGPURequiredLimits, limits);
	SIZE(WGPUQueueDescriptor); AT(WGPUQueueDescriptor, label);
	SIZE(WGPUUncapturedErrorCallbackInfo); AT(WGPUUncapturedErrorCallbackInfo, callback); AT(WGPUUncapturedErrorCallbackInfo, userdata);
	SIZE(WGPUDeviceDescriptor); AT(WGPUDeviceDescriptor, nextInChain); AT(WGPUDeviceDescriptor, label);
	AT(WGPUDeviceDescriptor, requiredFeatureCount); AT(WGPUDeviceDescriptor, requiredFeatures);
	AT(WGPUDeviceDescriptor, requiredLimits); AT(WGPUDeviceDescriptor, defaultQueue);
	AT(WGPUDeviceDescriptor, deviceLostCallback); AT(WGPUDeviceDescriptor, deviceLostUserdata);
	AT(WGPUDeviceDescriptor, uncapturedErrorCallbackInfo);
	SIZE(WGPULimits);
	AT(WGPULimits, maxTextureDimension1D); AT(WGPULimits, maxTextureDimension2D); AT(WGPULimits, maxTextureDimension3D);
	AT(WGPULimits, maxTextureArrayLayers); AT(WGPULimits, maxBindGroups); AT(WGPULimits, maxBindGroupsPlusVertexBuffers);
	AT(WGPULimits, maxBindingsPerBindGroup); AT(WGPULimits, maxDynamicUniformBuffersPerPipelineLayout);
	AT(WGPULimits, maxDynamicStorageBuffersPerPipelineLayout); AT(WGPULimits, maxSampledTexturesPerShaderStage);
	AT(WGPULimits, maxSamplersPerShaderStage); AT(WGPULimits, maxStorageBuffersPerShaderStage);
	AT(WGPULimits, maxStorageTexturesPerShaderStage); AT(WGPULimits, maxUniformBuffersPerShaderStage);
	AT(WGPULimits, maxUniformBufferBindingSize); AT(WGPULimits, maxStorageBufferBindingSize);
	AT(WGPULimits, minUniformBufferOffsetAlignment); AT(WGPULimits, minStorageBufferOffsetAlignment);
	AT(WGPULimits, maxVertexBuffers); AT(WGPULimits, maxBufferSize); AT(WGPULimits, maxVertexAttributes);
	AT(WGPULimits, maxVertexBufferArrayStride); AT(WGPULimits, maxInterStageShaderComponents);
	AT(WGPULimits, maxInterStageShaderVariables); AT(WGPULimits, maxColorAttachments);
	AT(WGPULimits, maxColorAttachmentBytesPerSample); AT(WGPULimits, maxComputeWorkgroupStorageSize);
	AT(WGPULimits, maxComputeInvocationsPerWorkgroup); AT(WGPULimits, maxComputeWorkgroupSizeX);
	AT(WGPULimits, maxComputeWorkgroupSizeY); AT(WGPULimits, maxComputeWorkgroupSizeZ);
	AT(WGPULimits, maxComputeWorkgroupsPerDimension);
	IS(WGPUErrorFilter_Validation); IS(WGPUErrorFilter_OutOfMemory);
	IS(WGPUErrorType_NoError); IS(WGPUErrorType_Validation); IS(WGPUErrorType_OutOfMemory); IS(WGPUErrorType_Internal);
	IS(WGPUErrorType_Unknown); IS(WGPUErrorType_DeviceLost);
	IS(WGPUBufferMapAsyncStatus_Success); IS(WGPUBufferMapAsyncStatus_DeviceLost);
	IS(WGPUQueueWorkDoneStatus_Success); IS(WGPURequestDeviceStatus_Success); IS(WGPUDeviceLostReason_Unknown);
	IS(WGPUSType_InstanceExtras); IS(WGPUMapMode_Read); IS(WGPUMapMode_Write);
	return 0;
}
`
