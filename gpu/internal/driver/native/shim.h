// What the Go side calls. All memory that the library keeps a pointer to is owned here,
// in C: the binding hands out pointers to Go variables instead, which the collector
// invalidates. No callback enters Go; each one writes to a tandem_state.
#ifndef TANDEM_SHIM_H
#define TANDEM_SHIM_H

#include "abi.h"

enum { TANDEM_MESSAGE = 2048, TANDEM_RING = 512, TANDEM_DYNAMIC = 4 };

typedef struct {
	uint32_t type; // WGPUErrorType, 0 for none
	char message[TANDEM_MESSAGE];
} tandem_error;

struct tandem_state;

typedef struct {
	struct tandem_state *state;
	uint64_t serial;
} tandem_mark;

// tandem_state is what callbacks of one device write to. They run inside calls into the
// library, which the device's lock covers.
typedef struct tandem_state {
	uint64_t done;       // newest submission reported finished
	uint32_t lost;       // the device is gone
	uint32_t failed;     // WGPUErrorType of the first error outside of a scope
	tandem_error reason; // of either, whichever came first
	tandem_mark ring[TANDEM_RING];
} tandem_state;

// tandem_mapping is the state of one mapping.
typedef struct {
	uint32_t finished;
	uint32_t status; // WGPUBufferMapAsyncStatus
} tandem_mapping;

enum { TANDEM_DISPATCH = 1, TANDEM_COPY, TANDEM_CLEAR, TANDEM_TIMESTAMP, TANDEM_RESOLVE };

// tandem_command is a checked command. Handles are integers so that a list of commands
// in Go memory holds no pointer.
typedef struct {
	uint32_t op;
	uint32_t dynamic;
	uint32_t x, y, z;
	uint32_t offsets[TANDEM_DYNAMIC];
	uint32_t pad;
	uintptr_t first;  // pipeline, source, query set
	uintptr_t second; // bind group, destination
	uint64_t first_offset, second_offset, size;
} tandem_command;

WGPUInstance tandem_create_instance(uint32_t backends, uint32_t flags);
int tandem_adapter_limits(void *adapter, WGPULimits *limits);
WGPUDevice tandem_request_device(void *adapter, char const *label, uint32_t const *features, size_t count, WGPULimits const *limits, tandem_state *state, tandem_error *error);

void tandem_push(void *device);
void tandem_pop(void *device, tandem_error *error);
void tandem_poll(void *device);
int tandem_write(void *device, void *queue, void *buffer, uint64_t offset, void const *data, size_t size, tandem_error *error);
int tandem_submit(void *device, void *queue, tandem_state *state, tandem_command const *commands, size_t count, size_t stretch, uint64_t serial, tandem_error *error);
int tandem_map(void *device, void *buffer, uint32_t mode, size_t offset, size_t size, tandem_mapping *mapping, tandem_error *error);
void tandem_nap(uint32_t nanoseconds);
void tandem_provoke(void *queue, void *buffer);
void tandem_lose(tandem_state *state, char const *message);
void tandem_copy(void *to, void const *from, size_t size);

#endif // TANDEM_SHIM_H
