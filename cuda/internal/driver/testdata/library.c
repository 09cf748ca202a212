// A library with the driver's entry points, which notes what it was given. Words that
// point to results are noted as what was written there.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t ptr;
typedef void *handle;

static char notes[1 << 16];
static size_t used;

static int note(const char *format, ...) {
	if (used > sizeof notes / 2) used = 0; // nobody has taken them
	va_list a;
	va_start(a, format);
	used += vsnprintf(notes + used, sizeof notes - used, format, a);
	va_end(a);
	return 0;
}

const char *taken(void) {
	static char copy[sizeof notes];
	memcpy(copy, notes, sizeof notes);
	used = notes[0] = 0;
	return copy;
}

int cuInit(unsigned flags) { return note("init %u;", flags); }
#ifdef OLD
int cuDriverGetVersion(int *v) { *v = 12010; return 0; }
int cuGraphAddDependencies(handle g, handle *from, handle *to, size_t n) {
	for (size_t i = 0; i < n; i++) note("whole edge %p %p>%p;", g, from[i], to[i]);
	return 0;
}
#else
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuGraphAddDependencies(handle g, handle *from, handle *to, size_t n) { return note("not this one;"); }
int cuGraphAddDependencies_v2(handle g, handle *from, handle *to, const unsigned char *edges, size_t n) {
	for (size_t i = 0; i < n; i++)
		note("edge %p %p>%p %d,%d,%d;", g, from[i], to[i], edges[8 * i], edges[8 * i + 1], edges[8 * i + 2]);
	return 0;
}
int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *at, const uint64_t *size, const uint64_t *stride,
		const uint32_t *box, const uint32_t *step, int interleave, int swizzle, int promotion, int fill) {
	memset(map, 0x5A, 128);
	return note("map %d type %d rank %u at %p size %lu,%lu stride %lu box %u,%u step %u,%u: %d %d %d %d;", (int)((uintptr_t)map % 64), type, rank,
		at, size[0], size[1], stride[0], box[0], box[1], step[0], step[1], interleave, swizzle, promotion, fill);
}
#endif
int cuGetErrorName(int code, const char **s) { *s = code == 2 ? "NAME" : NULL; return code != 2; }
int cuGetErrorString(int code, const char **s) { *s = code == 2 ? "text" : NULL; return code != 2; }
int cuDeviceGetCount(int *n) { *n = 3; return 0; }
int cuDeviceGet(int *d, int ordinal) { *d = 40 + ordinal; return ordinal > 2 ? 101 : 0; }
int cuDeviceGetName(char *s, int n, int d) { return snprintf(s, n, "device %d", d) < 0; }
int cuDeviceGetUuid_v2(unsigned char *id, int d) { for (int i = 0; i < 16; i++) id[i] = d + i; return 0; }
int cuDeviceTotalMem_v2(size_t *n, int d) { *n = (size_t)d << 32; return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) { *v = 1000 * a + d; return 0; }
int cuCtxCreate_v2(handle *c, unsigned flags, int d) { *c = (handle)0x100; return note("context %u %d;", flags, d); }
int cuCtxDestroy_v2(handle c) { return note("destroy context %p;", c); }
int cuCtxSetCurrent(handle c) { return note("current %p;", c); }
int cuCtxGetCurrent(handle *c) { *c = (handle)0x100; return 0; }
int cuCtxGetStreamPriorityRange(int *least, int *greatest) { *least = 0; *greatest = -5; return 0; }
int cuMemGetInfo_v2(size_t *free, size_t *total) { *free = 1ull << 33; *total = 1ull << 37; return 0; }
int cuMemAlloc_v2(ptr *p, size_t n) { *p = 0x123456789A00; return n > 1000 ? 2 : note("alloc %zu;", n); }
int cuMemFree_v2(ptr p) { return note("free %lx;", p); }
static char page[64] = "host";
int cuMemHostAlloc(void **p, size_t n, unsigned flags) { *p = page; return note("host %zu %u;", n, flags); }
int cuMemFreeHost(void *p) { return note("free host %d;", p == page); }
typedef struct { int type, handles, place, id; void *win32; unsigned char flags[8]; } prop;
int cuMemGetAllocationGranularity(size_t *n, const prop *p, int option) { *n = 2 << 20; return note("grain %d %d %d;", p->place, p->id, option); }
int cuMemAddressReserve(ptr *p, size_t n, size_t align, ptr at, uint64_t flags) { *p = 0x7000; return note("reserve %zu %zu %lx %lu;", n, align, at, flags); }
int cuMemAddressFree(ptr p, size_t n) { return note("unreserve %lx %zu;", p, n); }
int cuMemCreate(uint64_t *m, size_t n, const prop *p, uint64_t flags) {
	*m = 0xABCDEF0123456789;
	return note("create %zu %d %d %d %d %p %lu;", n, p->type, p->handles, p->place, p->id, p->win32, flags);
}
int cuMemRelease(uint64_t m) { return note("release %lx;", m); }
int cuMemMap(ptr p, size_t n, size_t offset, uint64_t m, uint64_t flags) { return note("map %lx %zu %zu %lx %lu;", p, n, offset, m, flags); }
int cuMemSetAccess(ptr p, size_t n, const int *access, size_t count) {
	return note("access %lx %zu %d %d %d %zu;", p, n, access[0], access[1], access[2], count);
}
#ifndef LESS
int cuMemUnmap(ptr p, size_t n) { return note("unmap %lx %zu;", p, n); }
#endif
int cuMemcpyHtoDAsync_v2(ptr d, const void *s, size_t n, handle h) { return note("up %lx %p %zu %p;", d, s, n, h); }
int cuMemcpyDtoHAsync_v2(void *d, ptr s, size_t n, handle h) { return note("down %p %lx %zu %p;", d, s, n, h); }
int cuMemcpyDtoDAsync_v2(ptr d, ptr s, size_t n, handle h) { return note("across %lx %lx %zu %p;", d, s, n, h); }
int cuMemsetD32Async(ptr d, unsigned v, size_t n, handle h) { return note("set %lx %x %zu %p;", d, v, n, h); }
int cuLaunchKernel(handle f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, handle s,
		void **params, void **extra) {
	return note("launch %p %u,%u,%u %u,%u,%u %u %p %.4s %p;", f, gx, gy, gz, bx, by, bz, shared, s, (char *)params[0], extra);
}
typedef struct { int id; char pad[4]; union { int word; char room[64]; } value; } attribute;
typedef struct { unsigned g[3], b[3], shared; handle stream; attribute *attributes; unsigned count; } config;
int cuLaunchKernelEx(const config *c, handle f, void **params, void **extra) {
	note("launch %p %u,%u,%u %u,%u,%u %u %p %.4s %p", f, c->g[0], c->g[1], c->g[2], c->b[0], c->b[1], c->b[2], c->shared, c->stream,
		(char *)params[0], extra);
	for (unsigned i = 0; i < c->count; i++) note(" with %d=%d", c->attributes[i].id, c->attributes[i].value.word);
	return note(";");
}
int cuLaunchCooperativeKernel(handle f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
		handle s, void **params) {
	return note("together %p %u,%u,%u %u,%u,%u %u %p %.4s;", f, gx, gy, gz, bx, by, bz, shared, s, (char *)params[0]);
}
int cuStreamCreateWithPriority(handle *s, unsigned flags, int priority) { *s = (handle)0x200; return note("stream %u %d;", flags, priority); }
int cuStreamDestroy_v2(handle s) { return note("destroy stream %p;", s); }
int cuStreamSynchronize(handle s) { return note("wait %p;", s); }
int cuStreamQuery(handle s) { return s == (handle)0x200 ? 600 : 0; }
int cuEventCreate(handle *e, unsigned flags) { *e = (handle)0x300; return note("event %u;", flags); }
int cuEventDestroy_v2(handle e) { return note("destroy event %p;", e); }
int cuEventRecord(handle e, handle s) { return note("record %p %p;", e, s); }
int cuEventQuery(handle e) { return e == (handle)0x300 ? 600 : 700; }
int cuEventElapsedTime(float *ms, handle a, handle b) { *ms = 1.5f; return note("elapsed %p %p;", a, b); }
int cuModuleLoadDataEx(handle *m, const char *image, unsigned n, const int *options, void **values) {
	*m = (handle)0x400;
	note("load %s %d;", image, (int)((uintptr_t)image % 16));
	for (unsigned i = 0; i < n; i++) note("option %d;", options[i]);
	if (strcmp(image, "bad") != 0) return 0;
	snprintf(values[0], (size_t)values[1], "line 1\n  line 2\n");
	return 2;
}
int cuModuleUnload(handle m) { return note("unload %p;", m); }
int cuModuleGetFunction(handle *f, handle m, const char *name) { *f = (handle)0x500; return note("function %p %s;", m, name); }
int cuFuncGetAttribute(int *v, int a, handle f) { *v = 70 + a; return note("attribute %p;", f); }
int cuFuncSetAttribute(handle f, int a, int v) { return note("set attribute %p %d %d;", f, a, v); }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, handle f, int threads, size_t shared) { *n = 6; return note("occupancy %p %d %zu;", f, threads, shared); }
int cuGraphCreate(handle *g, unsigned flags) { *g = (handle)0x600; return note("graph %u;", flags); }
int cuGraphDestroy(handle g) { return note("destroy graph %p;", g); }
typedef struct { handle f; unsigned g[3], b[3], shared; void **params, **extra; handle kern, context; } node;
int cuGraphAddKernelNode_v2(handle *n, handle g, const handle *after, size_t count, const node *k) {
	*n = (handle)0x700;
	note("node %p", g);
	for (size_t i = 0; i < count; i++) note(" after %p", after[i]);
	return note(" %p %u,%u,%u %u,%u,%u %u %.4s %p %p %p;", k->f, k->g[0], k->g[1], k->g[2], k->b[0], k->b[1], k->b[2], k->shared,
		(char *)k->params[0], k->extra, k->kern, k->context);
}
int cuGraphKernelNodeSetAttribute(handle n, int a, const int *v) { return note("node attribute %p %d %d;", n, a, v[0]); }
int cuGraphInstantiateWithFlags(handle *x, handle g, uint64_t flags) { *x = (handle)0x800; return note("instantiate %p %lu;", g, flags); }
int cuGraphUpload(handle x, handle s) { return note("upload %p %p;", x, s); }
int cuGraphExecDestroy(handle x) { return note("destroy exec %p;", x); }
int cuGraphLaunch(handle x, handle s) { return note("launch graph %p %p;", x, s); }
