//go:build cgo && !js && (linux || darwin || windows)

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "shim.h"

static void set_error(tandem_error *error, uint32_t type, char const *message)
{
	if (error->type != 0)
		return;
	error->type = type != 0 ? type : WGPUErrorType_Unknown;
	snprintf(error->message, sizeof error->message, "%s", message != NULL ? message : "");
}

static void on_error(WGPUErrorType type, char const *message, void *userdata)
{
	if (type != WGPUErrorType_NoError)
		set_error(userdata, type, message);
}

static void on_uncaptured(WGPUErrorType type, char const *message, void *userdata)
{
	tandem_state *state = userdata;
	if (type == WGPUErrorType_NoError)
		return;
	if (type == WGPUErrorType_DeviceLost)
		state->lost = 1;
	if (state->failed == 0)
		state->failed = type;
	set_error(&state->reason, type, message);
}

static void on_lost(WGPUDeviceLostReason reason, char const *message, void *userdata)
{
	tandem_state *state = userdata;
	(void)reason;
	state->lost = 1;
	set_error(&state->reason, WGPUErrorType_DeviceLost, message);
}

static void on_done(WGPUQueueWorkDoneStatus status, void *userdata)
{
	tandem_mark *mark = userdata;
	tandem_state *state = mark->state;
	if (status != WGPUQueueWorkDoneStatus_Success) {
		if (state->failed == 0)
			state->failed = WGPUErrorType_Unknown;
		set_error(&state->reason, WGPUErrorType_Unknown, "a submission did not finish");
	} else if (mark->serial > state->done) {
		state->done = mark->serial;
	}
}

static void on_mapped(WGPUBufferMapAsyncStatus status, void *userdata)
{
	tandem_mapping *mapping = userdata;
	mapping->status = status;
	mapping->finished = 1;
}

WGPUInstance tandem_create_instance(uint32_t backends, uint32_t flags)
{
	WGPUInstanceExtras extras;
	WGPUInstanceDescriptor descriptor;
	memset(&extras, 0, sizeof extras);
	extras.chain.sType = (WGPUSType)WGPUSType_InstanceExtras;
	extras.backends = backends;
	extras.flags = flags;
	descriptor.nextInChain = &extras.chain;
	return wgpuCreateInstance(&descriptor);
}

int tandem_adapter_limits(void *adapter, WGPULimits *limits)
{
	WGPUSupportedLimits supported;
	memset(&supported, 0, sizeof supported);
	if (!wgpuAdapterGetLimits(adapter, &supported))
		return 0;
	*limits = supported.limits;
	return 1;
}

typedef struct {
	WGPUDevice device;
	tandem_error *error;
} request;

static void on_device(WGPURequestDeviceStatus status, WGPUDevice device, char const *message, void *userdata)
{
	request *r = userdata;
	if (status == WGPURequestDeviceStatus_Success)
		r->device = device;
	else
		set_error(r->error, WGPUErrorType_Unknown, message);
}

WGPUDevice tandem_request_device(void *adapter, char const *label, uint32_t const *features, size_t count, WGPULimits const *limits, tandem_state *state, tandem_error *error)
{
	// A later library may know more members at the end: they read as zero.
	union {
		WGPUDeviceDescriptor d;
		char room[sizeof(WGPUDeviceDescriptor) + 128];
	} u;
	WGPURequiredLimits required;
	request r = {NULL, error};

	memset(&u, 0, sizeof u);
	memset(&required, 0, sizeof required);
	required.limits = *limits;
	u.d.label = label;
	u.d.requiredFeatures = (WGPUFeatureName const *)features;
	u.d.requiredFeatureCount = count;
	u.d.requiredLimits = &required;
	u.d.deviceLostCallback = on_lost;
	u.d.deviceLostUserdata = state;
	u.d.uncapturedErrorCallbackInfo.callback = on_uncaptured;
	u.d.uncapturedErrorCallbackInfo.userdata = state;
	wgpuAdapterRequestDevice(adapter, &u.d, on_device, &r);
	if (r.device == NULL)
		set_error(error, WGPUErrorType_Unknown, "the library gave no reason");
	return r.device;
}

void tandem_push(void *device)
{
	wgpuDevicePushErrorScope(device, WGPUErrorFilter_OutOfMemory);
	wgpuDevicePushErrorScope(device, WGPUErrorFilter_Validation);
}

void tandem_pop(void *device, tandem_error *error)
{
	wgpuDevicePopErrorScope(device, on_error, error);
	wgpuDevicePopErrorScope(device, on_error, error);
}

// With wait set, the library gives up after some seconds and reports success.
void tandem_poll(void *device)
{
	wgpuDevicePoll(device, 0, NULL);
}

int tandem_write(void *device, void *queue, void *buffer, uint64_t offset, void const *data, size_t size, tandem_error *error)
{
	tandem_push(device);
	wgpuQueueWriteBuffer(queue, buffer, offset, data, size);
	tandem_pop(device, error);
	return error->type == 0;
}

static void encode(WGPUCommandEncoder encoder, tandem_command const *commands, size_t count)
{
	WGPUComputePassEncoder pass = NULL;
	uintptr_t pipeline = 0;

	for (size_t i = 0; i < count; i++) {
		tandem_command const *c = &commands[i];
		if (c->op == TANDEM_DISPATCH) {
			if (pass == NULL) {
				pass = wgpuCommandEncoderBeginComputePass(encoder, NULL);
				pipeline = 0;
			}
			if (c->first != pipeline) {
				wgpuComputePassEncoderSetPipeline(pass, (WGPUComputePipeline)c->first);
				pipeline = c->first;
			}
			wgpuComputePassEncoderSetBindGroup(pass, 0, (WGPUBindGroup)c->second, c->dynamic, c->offsets);
			wgpuComputePassEncoderDispatchWorkgroups(pass, c->x, c->y, c->z);
			continue;
		}
		if (pass != NULL) {
			wgpuComputePassEncoderEnd(pass);
			wgpuComputePassEncoderRelease(pass);
			pass = NULL;
		}
		switch (c->op) {
		case TANDEM_COPY:
			wgpuCommandEncoderCopyBufferToBuffer(encoder, (WGPUBuffer)c->first, c->first_offset, (WGPUBuffer)c->second, c->second_offset, c->size);
			break;
		case TANDEM_CLEAR:
			wgpuCommandEncoderClearBuffer(encoder, (WGPUBuffer)c->second, c->second_offset, c->size);
			break;
		case TANDEM_TIMESTAMP:
			wgpuCommandEncoderWriteTimestamp(encoder, (WGPUQuerySet)c->first, c->x);
			break;
		case TANDEM_RESOLVE:
			wgpuCommandEncoderResolveQuerySet(encoder, (WGPUQuerySet)c->first, c->x, c->y, (WGPUBuffer)c->second, c->second_offset);
			break;
		}
	}
	if (pass != NULL) {
		wgpuComputePassEncoderEnd(pass);
		wgpuComputePassEncoderRelease(pass);
	}
}

// Encoding a dispatch takes the host about as long as running a small one takes the
// device, so a long list goes out in stretches, the first one short: the device works on
// one while the next is encoded. The arguments of all commands were checked before.
int tandem_submit(void *device, void *queue, tandem_state *state, tandem_command const *commands, size_t count, size_t stretch, uint64_t serial, tandem_error *error)
{
	tandem_mark *mark = &state->ring[serial % TANDEM_RING];
	size_t first = 0, length = stretch == 0 || count < 2 * stretch ? count : stretch / 4;

	do {
		WGPUCommandEncoder encoder;
		WGPUCommandBuffer buffer = NULL;

		tandem_push(device);
		encoder = wgpuDeviceCreateCommandEncoder(device, NULL);
		encode(encoder, commands + first, length);
		buffer = wgpuCommandEncoderFinish(encoder, NULL);
		tandem_pop(device, error);
		wgpuCommandEncoderRelease(encoder);
		// Submitting an invalid command buffer aborts the process, and so does submitting
		// to a device that is gone.
		if (error->type == 0 && !state->lost && buffer != NULL)
			wgpuQueueSubmitForIndex(queue, 1, &buffer);
		if (buffer != NULL)
			wgpuCommandBufferRelease(buffer);
		first += length;
		length = count - first < 2 * stretch ? count - first : stretch;
	} while (error->type == 0 && !state->lost && first < count);
	if (error->type == 0 && !state->lost) {
		mark->state = state;
		mark->serial = serial;
		wgpuQueueOnSubmittedWorkDone(queue, on_done, mark);
	}
	return error->type == 0;
}

int tandem_map(void *device, void *buffer, uint32_t mode, size_t offset, size_t size, tandem_mapping *mapping, tandem_error *error)
{
	mapping->finished = 0;
	mapping->status = WGPUBufferMapAsyncStatus_Success;
	tandem_push(device);
	wgpuBufferMapAsync(buffer, mode, offset, size, on_mapped, mapping);
	tandem_pop(device, error);
	return error->type == 0;
}

// Under a second. Windows has no sleep this short, and does not call it.
void tandem_nap(uint32_t nanoseconds)
{
#ifdef _WIN32
	(void)nanoseconds;
#else
	struct timespec t = {0, (long)nanoseconds};
	nanosleep(&t, NULL);
#endif
}

// A write that is not aligned.
void tandem_provoke(void *queue, void *buffer)
{
	uint32_t word = 0;
	wgpuQueueWriteBuffer(queue, buffer, 1, &word, sizeof word);
}

void tandem_lose(tandem_state *state, char const *message)
{
	on_lost(WGPUDeviceLostReason_Unknown, message, state);
}

void tandem_copy(void *to, void const *from, size_t size)
{
	memcpy(to, from, size);
}
