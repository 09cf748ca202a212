package driver

// An entry is an entry point of the library.
type entry int

const (
	cuInit entry = iota
	cuDriverGetVersion
	cuGetErrorName
	cuGetErrorString
	cuDeviceGetCount
	cuDeviceGet
	cuDeviceGetName
	cuDeviceGetUUID
	cuDeviceTotalMem
	cuDeviceGetAttribute
	cuCtxCreate
	cuCtxDestroy
	cuCtxSetCurrent
	cuCtxGetCurrent
	cuCtxGetStreamPriorityRange
	cuMemGetInfo
	cuMemAlloc
	cuMemFree
	cuMemHostAlloc
	cuMemFreeHost
	cuMemGetAllocationGranularity
	cuMemAddressReserve
	cuMemAddressFree
	cuMemCreate
	cuMemRelease
	cuMemMap
	cuMemSetAccess
	cuMemUnmap
	cuMemcpyHtoDAsync
	cuMemcpyDtoHAsync
	cuMemcpyDtoDAsync
	cuMemsetD32Async
	cuLaunchKernel
	cuLaunchKernelEx
	cuLaunchCooperativeKernel
	cuStreamCreateWithPriority
	cuStreamDestroy
	cuStreamSynchronize
	cuStreamQuery
	cuEventCreate
	cuEventDestroy
	cuEventRecord
	cuEventQuery
	cuEventElapsedTime
	cuModuleLoadDataEx
	cuModuleUnload
	cuModuleGetFunction
	cuFuncGetAttribute
	cuFuncSetAttribute
	cuOccupancyMaxActiveBlocksPerMultiprocessor
	cuGraphCreate
	cuGraphDestroy
	cuGraphAddKernelNode
	cuGraphKernelNodeSetAttribute
	cuGraphAddDependencies
	cuGraphAddWholeDependencies
	cuGraphInstantiateWithFlags
	cuGraphUpload
	cuGraphExecDestroy
	cuGraphLaunch
	cuTensorMapEncodeTiled
	entryCount
)

// entries are the names under which the library exports them, which hold the version of
// their parameters, and the CUDA version from which on they are there: 12030 for 12.3.
// Without an optional one the library is taken and does without.
var entries = [entryCount]struct {
	name     string
	from     int
	optional bool
}{
	cuInit:                        {"cuInit", 2000, false},
	cuDriverGetVersion:            {"cuDriverGetVersion", 2020, false},
	cuGetErrorName:                {"cuGetErrorName", 6000, false},
	cuGetErrorString:              {"cuGetErrorString", 6000, false},
	cuDeviceGetCount:              {"cuDeviceGetCount", 2000, false},
	cuDeviceGet:                   {"cuDeviceGet", 2000, false},
	cuDeviceGetName:               {"cuDeviceGetName", 2000, false},
	cuDeviceGetUUID:               {"cuDeviceGetUuid_v2", 11040, false},
	cuDeviceTotalMem:              {"cuDeviceTotalMem_v2", 3020, false},
	cuDeviceGetAttribute:          {"cuDeviceGetAttribute", 2000, false},
	cuCtxCreate:                   {"cuCtxCreate_v2", 3020, false},
	cuCtxDestroy:                  {"cuCtxDestroy_v2", 4000, false},
	cuCtxSetCurrent:               {"cuCtxSetCurrent", 4000, false},
	cuCtxGetCurrent:               {"cuCtxGetCurrent", 4000, false},
	cuCtxGetStreamPriorityRange:   {"cuCtxGetStreamPriorityRange", 5050, false},
	cuMemGetInfo:                  {"cuMemGetInfo_v2", 3020, false},
	cuMemAlloc:                    {"cuMemAlloc_v2", 3020, false},
	cuMemFree:                     {"cuMemFree_v2", 3020, false},
	cuMemHostAlloc:                {"cuMemHostAlloc", 2020, false},
	cuMemFreeHost:                 {"cuMemFreeHost", 2000, false},
	cuMemGetAllocationGranularity: {"cuMemGetAllocationGranularity", 10020, false},
	cuMemAddressReserve:           {"cuMemAddressReserve", 10020, false},
	cuMemAddressFree:              {"cuMemAddressFree", 10020, false},
	cuMemCreate:                   {"cuMemCreate", 10020, false},
	cuMemRelease:                  {"cuMemRelease", 10020, false},
	cuMemMap:                      {"cuMemMap", 10020, false},
	cuMemSetAccess:                {"cuMemSetAccess", 10020, false},
	cuMemUnmap:                    {"cuMemUnmap", 10020, false},
	cuMemcpyHtoDAsync:             {"cuMemcpyHtoDAsync_v2", 3020, false},
	cuMemcpyDtoHAsync:             {"cuMemcpyDtoHAsync_v2", 3020, false},
	cuMemcpyDtoDAsync:             {"cuMemcpyDtoDAsync_v2", 3020, false},
	cuMemsetD32Async:              {"cuMemsetD32Async", 3020, false},
	cuLaunchKernel:                {"cuLaunchKernel", 4000, false},
	cuLaunchKernelEx:              {"cuLaunchKernelEx", 11060, false},
	cuLaunchCooperativeKernel:     {"cuLaunchCooperativeKernel", 9000, false},
	cuStreamCreateWithPriority:    {"cuStreamCreateWithPriority", 5050, false},
	cuStreamDestroy:               {"cuStreamDestroy_v2", 4000, false},
	cuStreamSynchronize:           {"cuStreamSynchronize", 2000, false},
	cuStreamQuery:                 {"cuStreamQuery", 2000, false},
	cuEventCreate:                 {"cuEventCreate", 2000, false},
	cuEventDestroy:                {"cuEventDestroy_v2", 4000, false},
	cuEventRecord:                 {"cuEventRecord", 2000, false},
	cuEventQuery:                  {"cuEventQuery", 2000, false},
	cuEventElapsedTime:            {"cuEventElapsedTime", 2000, false},
	cuModuleLoadDataEx:            {"cuModuleLoadDataEx", 2010, false},
	cuModuleUnload:                {"cuModuleUnload", 2000, false},
	cuModuleGetFunction:           {"cuModuleGetFunction", 2000, false},
	cuFuncGetAttribute:            {"cuFuncGetAttribute", 2020, false},
	cuFuncSetAttribute:            {"cuFuncSetAttribute", 9000, false},
	cuOccupancyMaxActiveBlocksPerMultiprocessor: {"cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050, false},
	cuGraphCreate:                 {"cuGraphCreate", 10000, false},
	cuGraphDestroy:                {"cuGraphDestroy", 10000, false},
	cuGraphAddKernelNode:          {"cuGraphAddKernelNode_v2", 12000, false},
	cuGraphKernelNodeSetAttribute: {"cuGraphKernelNodeSetAttribute", 11000, false},
	cuGraphAddDependencies:        {"cuGraphAddDependencies_v2", 12030, true},
	cuGraphAddWholeDependencies:   {"cuGraphAddDependencies", 10000, true},
	cuGraphInstantiateWithFlags:   {"cuGraphInstantiateWithFlags", 11040, false},
	cuGraphUpload:                 {"cuGraphUpload", 11010, false},
	cuGraphExecDestroy:            {"cuGraphExecDestroy", 10000, false},
	cuGraphLaunch:                 {"cuGraphLaunch", 10000, false},
	cuTensorMapEncodeTiled:        {"cuTensorMapEncodeTiled", 12000, true},
}
