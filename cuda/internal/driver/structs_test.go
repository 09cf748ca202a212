package driver

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// The numbers are those of a C++ compiler for the declarations in cuda.h 13.0.
func TestLayouts(t *testing.T) {
	t.Parallel()
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the driver exists for 64-bit systems")
	}
	var (
		node   kernelNodeParams
		place  memLocation
		memory memAllocationProp
		access memAccess
		edge   edgeData
		value  attributeValue
		extra  launchAttribute
		config launchConfig
	)
	for name, is := range map[string][2]uintptr{
		"CUDA_KERNEL_NODE_PARAMS_v2":                {unsafe.Sizeof(node), 72},
		"CUDA_KERNEL_NODE_PARAMS_v2.func":           {unsafe.Offsetof(node.function), 0},
		"CUDA_KERNEL_NODE_PARAMS_v2.gridDimX":       {unsafe.Offsetof(node.grid), 8},
		"CUDA_KERNEL_NODE_PARAMS_v2.blockDimX":      {unsafe.Offsetof(node.block), 20},
		"CUDA_KERNEL_NODE_PARAMS_v2.sharedMemBytes": {unsafe.Offsetof(node.shared), 32},
		"CUDA_KERNEL_NODE_PARAMS_v2.kernelParams":   {unsafe.Offsetof(node.params), 40},
		"CUDA_KERNEL_NODE_PARAMS_v2.extra":          {unsafe.Offsetof(node.extra), 48},
		"CUDA_KERNEL_NODE_PARAMS_v2.kern":           {unsafe.Offsetof(node.kernel), 56},
		"CUDA_KERNEL_NODE_PARAMS_v2.ctx":            {unsafe.Offsetof(node.context), 64},
		"CUmemLocation":                             {unsafe.Sizeof(place), 8},
		"CUmemLocation.id":                          {unsafe.Offsetof(place.id), 4},
		"CUmemAllocationProp":                       {unsafe.Sizeof(memory), 32},
		"CUmemAllocationProp.requestedHandleTypes":  {unsafe.Offsetof(memory.handles), 4},
		"CUmemAllocationProp.location":              {unsafe.Offsetof(memory.location), 8},
		"CUmemAllocationProp.win32HandleMetaData":   {unsafe.Offsetof(memory.win32), 16},
		"CUmemAllocationProp.allocFlags":            {unsafe.Offsetof(memory.flags), 24},
		"CUmemAccessDesc":                           {unsafe.Sizeof(access), 12},
		"CUmemAccessDesc.flags":                     {unsafe.Offsetof(access.flags), 8},
		"CUgraphEdgeData":                           {unsafe.Sizeof(edge), 8},
		"CUgraphEdgeData.from_port":                 {unsafe.Offsetof(edge.fromPort), 0},
		"CUgraphEdgeData.to_port":                   {unsafe.Offsetof(edge.toPort), 1},
		"CUgraphEdgeData.type":                      {unsafe.Offsetof(edge.kind), 2},
		"CUlaunchAttributeValue":                    {unsafe.Sizeof(value), 64},
		"CUlaunchAttributeValue.cooperative":        {unsafe.Offsetof(value.word), 0},
		"CUlaunchAttribute":                         {unsafe.Sizeof(extra), 72},
		"CUlaunchAttribute.value":                   {unsafe.Offsetof(extra.value), 8},
		"CUlaunchConfig":                            {unsafe.Sizeof(config), 56},
		"CUlaunchConfig.blockDimX":                  {unsafe.Offsetof(config.block), 12},
		"CUlaunchConfig.sharedMemBytes":             {unsafe.Offsetof(config.shared), 24},
		"CUlaunchConfig.hStream":                    {unsafe.Offsetof(config.stream), 32},
		"CUlaunchConfig.attrs":                      {unsafe.Offsetof(config.attributes), 40},
		"CUlaunchConfig.numAttrs":                   {unsafe.Offsetof(config.count), 48},
	} {
		require.Equal(t, is[1], is[0], name)
	}
}
