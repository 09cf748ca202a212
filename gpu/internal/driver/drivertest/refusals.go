package drivertest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

func (b *bench) invalid(err error, what ...any) {
	b.Helper()
	require.ErrorIs(b, err, pass.ErrInvalid, what...)
}

// refuseCommand wants Submit to refuse c, to run nothing of the list, and to work after.
func (b *bench) refuseCommand(name string, c driver.Command) {
	b.Helper()
	canary := b.work(4)
	b.fill(canary, 1)
	_, err := b.Submit([]driver.Command{driver.Clear(canary, 0, 4), c})
	b.invalid(err, name)
	require.ErrorContains(b, err, "command 1 of 2", name)
	require.EqualValues(b, 1, b.words(canary, 1)[0], name)
	require.NoError(b, b.DestroyBuffer(canary))
}

// works runs a small kernel to see that the device still does.
func (b *bench) works() {
	b.Helper()
	p, id := b.pipeline(addOne), b.work(256)
	g := b.group(p, driver.Binding{Buffer: id, Size: 256})
	b.submit(driver.Dispatch(p, g, 1, 1, 1))
	require.EqualValues(b, 1, b.words(id, 1)[0])
	require.NoError(b, b.DestroyBindGroup(g))
	require.NoError(b, b.DestroyPipeline(p))
	require.NoError(b, b.DestroyBuffer(id))
}

func testRefusedBuffers(t *testing.T, b *bench) {
	for name, d := range map[string]driver.BufferDesc{
		"no size":         {Usage: driver.Storage},
		"odd size":        {Size: 6, Usage: driver.Storage},
		"no usage":        {Size: 4},
		"unknown usage":   {Size: 4, Usage: 1 << 20},
		"read and store":  {Size: 4, Usage: driver.MapRead | driver.Storage},
		"read and write":  {Size: 4, Usage: driver.MapRead | driver.MapWrite},
		"write and dst":   {Size: 4, Usage: driver.MapWrite | driver.CopyDst},
		"over the limit":  {Size: b.Limits().MaxBufferSize/4*4 + 4, Usage: driver.Storage},
		"as large as can": {Size: ^uint64(3), Usage: driver.Storage},
		"zero in a label": {Label: "a\x00b", Size: 4, Usage: driver.Storage},
	} {
		_, err := b.CreateBuffer(d)
		b.invalid(err, name)
	}
	require.Zero(t, b.Ledger())
	b.works()
}

func testRefusedMaps(t *testing.T, b *bench) {
	id, plain := b.buffer(64, driver.MapRead|driver.CopyDst), b.work(64)
	one := make([]byte, 1)
	b.invalid(b.ReadMapped(b.ctx, plain, 0, one, patience), "usage")
	b.invalid(b.WriteMapped(b.ctx, id, 0, one, patience), "mode")
	b.invalid(b.ReadMapped(b.ctx, id, 64, one, patience), "after the end")
	b.invalid(b.ReadMapped(b.ctx, id, 60, make([]byte, 5), patience), "over the end")
	b.invalid(b.ReadMapped(b.ctx, id, 1<<63, make([]byte, 64), patience), "overflow")
	b.invalid(b.ReadMapped(b.ctx, 0, 0, one, patience), "no buffer")
	require.NoError(t, b.DestroyBuffer(id))
	b.invalid(b.ReadMapped(b.ctx, id, 0, one, patience), "destroyed")
	b.works()
}

func testRefusedWrites(t *testing.T, b *bench) {
	id, ro := b.work(16), b.buffer(16, driver.Storage)
	b.invalid(b.Write(ro, 0, make([]byte, 4)), "usage")
	b.invalid(b.Write(id, 2, make([]byte, 4)), "offset")
	b.invalid(b.Write(id, 0, make([]byte, 5)), "length")
	b.invalid(b.Write(id, 16, make([]byte, 4)), "after the end")
	b.invalid(b.Write(id, ^uint64(3), make([]byte, 8)), "overflow")
	require.NoError(t, b.DestroyBuffer(id))
	b.invalid(b.Write(id, 0, make([]byte, 4)), "destroyed")
	b.works()
}

func testRefusedPipelines(t *testing.T, b *bench) {
	many := func(kind driver.BindingKind, n uint32) []driver.BindingKind {
		kinds := make([]driver.BindingKind, n)
		for i := range kinds {
			kinds[i] = kind
		}
		return kinds
	}
	good := addOne.desc()
	for name, change := range map[string]func(*driver.PipelineDesc){
		"no source":           func(d *driver.PipelineDesc) { d.Source = "" },
		"no entry point":      func(d *driver.PipelineDesc) { d.Entry = "" },
		"missing entry point": func(d *driver.PipelineDesc) { d.Entry = "other" },
		"zero in the source":  func(d *driver.PipelineDesc) { d.Source += "\x00" },
		"bad source":          func(d *driver.PipelineDesc) { d.Source = strings.Replace(d.Source, "(", "((", 1) },
		"unknown kind":        func(d *driver.PipelineDesc) { d.Bindings = []driver.BindingKind{77} },
		"storage bindings": func(d *driver.PipelineDesc) {
			d.Bindings = many(driver.StorageReadWrite, b.Limits().MaxStorageBuffers+1)
		},
		"uniform bindings":  func(d *driver.PipelineDesc) { d.Bindings = many(driver.UniformBlock, b.Limits().MaxUniformBuffers+1) },
		"workgroup storage": func(d *driver.PipelineDesc) { d.WorkgroupStorage = b.Limits().MaxWorkgroupStorage + 4 },
		"dynamic bindings":  func(d *driver.PipelineDesc) { d.Bindings = many(driver.UniformDynamic, driver.MaxDynamic+1) },
	} {
		d := good
		change(&d)
		_, err := b.CreatePipeline(d)
		b.invalid(err, name)
	}
	if !b.inMemory() {
		for name, d := range map[string]driver.PipelineDesc{
			"type error": {Label: "bad", Entry: "main", Source: "@compute @workgroup_size(1) fn main() { let x: f32 = true; }"},
			"workgroup over the limit": {Label: "bad", Entry: "main",
				Source: "@compute @workgroup_size(4096, 64) fn main() { }"},
			"another kind":         {Label: "bad", Entry: "main", Source: good.Source, Bindings: []driver.BindingKind{driver.StorageRead}},
			"a binding is missing": {Label: "bad", Entry: "main", Source: good.Source},
		} {
			_, err := b.CreatePipeline(d)
			b.invalid(err, name)
			require.ErrorContains(t, err, "bad", "the message names the pipeline")
		}
	}
	require.Zero(t, b.Ledger())
	b.works()
}

func testRefusedGroups(t *testing.T, b *bench) {
	p, align := b.pipeline(copyWords), uint64(b.Limits().StorageOffsetAlignment)
	x, y, dead := b.work(4096), b.work(4096), b.work(4096)
	plain := b.buffer(64, driver.CopyDst)
	require.NoError(t, b.DestroyBuffer(dead))
	src := driver.Binding{Buffer: x, Size: 1024}
	for name, bindings := range map[string][]driver.Binding{
		"none":              nil,
		"too few":           {src},
		"too many":          {src, {Buffer: y, Size: 4}, {Buffer: y, Size: 4}},
		"no buffer":         {src, {Size: 4}},
		"destroyed buffer":  {src, {Buffer: dead, Size: 4}},
		"usage":             {src, {Buffer: plain, Size: 4}},
		"no size":           {src, {Buffer: y}},
		"odd size":          {src, {Buffer: y, Size: 6}},
		"unaligned":         {src, {Buffer: y, Offset: align / 2, Size: 4}},
		"over the end":      {src, {Buffer: y, Offset: 4096 - align, Size: align + 4}},
		"overflow":          {src, {Buffer: y, Offset: -align, Size: align + 4}},
		"read and written":  {src, {Buffer: x, Offset: 2048, Size: 1024}},
		"over the limit":    {src, {Buffer: y, Size: 1 << 40}},
		"huge with nothing": {{Size: 1 << 63}, {Size: 1 << 63}},
	} {
		_, err := b.CreateBindGroup(p, bindings)
		b.invalid(err, name)
	}
	_, err := b.CreateBindGroup(0, []driver.Binding{src})
	b.invalid(err, "no pipeline")

	wide := b.Limits().MaxUniformBindingSize + 16
	uniforms := b.buffer(wide, driver.Uniform)
	_, err = b.CreateBindGroup(b.pipeline(addUniform), []driver.Binding{src, {Buffer: uniforms, Size: wide}})
	b.invalid(err, "over the limit for uniforms")
	b.works()
}

func testRefusedCommands(t *testing.T, b *bench) {
	p, limit := b.pipeline(addOne), b.Limits().MaxWorkgroups
	x, y := b.work(256), b.work(256)
	plain := b.buffer(256, driver.Storage)
	dead := b.work(256)
	g, deadGroup := b.group(p, driver.Binding{Buffer: x, Size: 256}), b.group(p, driver.Binding{Buffer: dead, Size: 256})
	require.NoError(t, b.DestroyBuffer(dead))
	for name, c := range map[string]driver.Command{
		"no operation":           {},
		"unknown operation":      {Op: 99},
		"no pipeline":            driver.Dispatch(0, g, 1, 1, 1),
		"no group":               driver.Dispatch(p, 0, 1, 1, 1),
		"destroyed buffer":       driver.Dispatch(p, deadGroup, 1, 1, 1),
		"no workgroups":          driver.Dispatch(p, g, 1, 0, 1),
		"workgroups over x":      driver.Dispatch(p, g, limit+1, 1, 1),
		"workgroups over z":      driver.Dispatch(p, g, 1, 1, limit+1),
		"offset without binding": driver.Dispatch(p, g, 1, 1, 1, 0),
		"copy of nothing":        driver.Copy(y, 0, x, 0, 0),
		"copy in one buffer":     driver.Copy(x, 0, x, 128, 64),
		"copy unaligned":         driver.Copy(y, 2, x, 0, 4),
		"copy of odd size":       driver.Copy(y, 0, x, 0, 6),
		"copy over the end":      driver.Copy(y, 0, x, 252, 8),
		"copy after the end":     driver.Copy(y, 256, x, 0, 4),
		"copy overflow":          driver.Copy(y, ^uint64(3), x, 0, 8),
		"copy from destroyed":    driver.Copy(y, 0, dead, 0, 4),
		"copy to usage":          driver.Copy(plain, 0, x, 0, 4),
		"copy from usage":        driver.Copy(x, 0, plain, 0, 4),
		"clear of nothing":       driver.Clear(x, 0, 0),
		"clear unaligned":        driver.Clear(x, 1, 4),
		"clear over the end":     driver.Clear(x, 252, 8),
		"clear of usage":         driver.Clear(plain, 0, 4),
		"clear of destroyed":     driver.Clear(dead, 0, 4),
		"stamp without queries":  driver.Timestamp(0, 0),
	} {
		b.refuseCommand(name, c)
	}
	b.works()
}

func testNames(t *testing.T, b *bench) {
	other := b.open(t)
	defer other.Close()
	foreign, err := other.CreateBuffer(driver.BufferDesc{Size: 64, Usage: driver.Storage | driver.CopyDst})
	require.NoError(t, err)
	b.invalid(b.DestroyBuffer(foreign), "foreign buffer")
	b.refuseCommand("foreign buffer", driver.Clear(foreign, 0, 4))

	p := b.pipeline(addOne)
	id := b.work(256)
	g := b.group(p, driver.Binding{Buffer: id, Size: 256})
	require.NoError(t, b.DestroyBuffer(id))
	again := b.work(256)
	require.NotEqual(t, id, again)
	b.invalid(b.DestroyBuffer(id), "destroyed twice, the slot is in use again")
	require.NoError(t, b.DestroyBindGroup(g))
	b.invalid(b.DestroyBindGroup(g))
	require.NoError(t, b.DestroyPipeline(p))
	b.invalid(b.DestroyPipeline(p))
	require.Equal(t, driver.Ledger{Buffers: 1, Bytes: 256, InFlight: b.Ledger().InFlight}, b.Ledger())
}

func testBudget(t *testing.T, b *bench) {
	const part = Budget / 4
	var ids []driver.BufferID
	for range 4 {
		ids = append(ids, b.buffer(part, driver.Storage))
	}
	_, err := b.CreateBuffer(driver.BufferDesc{Label: "one more", Size: 4, Usage: driver.Storage})
	require.ErrorIs(t, err, pass.ErrOutOfMemory)
	require.ErrorContains(t, err, "one more")
	for _, id := range ids {
		require.NoError(t, b.DestroyBuffer(id))
	}
	b.works()
}

func testWaiting(t *testing.T, b *bench) {
	b.invalid(b.Wait(b.ctx, 1, patience), "a submission that was not made")
	require.NoError(t, b.Wait(b.ctx, 0, 0), "no submission")
	serial := b.submit()
	require.EqualValues(t, 1, serial)
	require.NoError(t, b.Wait(b.ctx, serial, patience))
	done, err := b.Done()
	require.NoError(t, err)
	require.Equal(t, serial, done)
	require.Zero(t, b.Ledger().InFlight)

	// What is finished is found even when the context is over; what is not, is not.
	ended, cancel := context.WithCancel(b.ctx)
	cancel()
	require.NoError(t, b.Wait(ended, serial, 0))
	for range 2 * driver.MaxInFlight {
		if serial, err = b.Submit(nil); err != nil {
			require.ErrorIs(t, err, driver.ErrBusy)
			require.NoError(t, b.Wait(b.ctx, serial+1, patience))
			break
		}
	}
	require.NoError(t, b.Wait(b.ctx, serial, patience))
	b.works()
}

func testAfterClose(t *testing.T, b *bench) {
	p, id := b.pipeline(addOne), b.work(256)
	staging := b.buffer(4, driver.MapRead|driver.CopyDst)
	g := b.group(p, driver.Binding{Buffer: id, Size: 256})
	for range 10 {
		b.submit(driver.Dispatch(p, g, 1, 1, 1))
	}
	require.NoError(t, b.Close())
	require.Zero(t, b.Ledger())
	closed := func(err error, what string) {
		t.Helper()
		require.ErrorIs(t, err, pass.ErrClosed, what)
	}
	_, err := b.CreateBuffer(driver.BufferDesc{Size: 4, Usage: driver.Storage})
	closed(err, "CreateBuffer")
	_, err = b.CreatePipeline(addOne.desc())
	closed(err, "CreatePipeline")
	_, err = b.CreateBindGroup(p, []driver.Binding{{Buffer: id, Size: 256}})
	closed(err, "CreateBindGroup")
	_, err = b.Submit(nil)
	closed(err, "Submit")
	_, err = b.Done()
	closed(err, "Done")
	closed(b.Write(id, 0, make([]byte, 4)), "Write")
	closed(b.ReadMapped(b.ctx, staging, 0, make([]byte, 4), time.Second), "ReadMapped")
	closed(b.WriteMapped(b.ctx, staging, 0, make([]byte, 4), time.Second), "WriteMapped")
	closed(b.Wait(b.ctx, 1, time.Second), "Wait")
	closed(b.DestroyBuffer(id), "DestroyBuffer")
	closed(b.DestroyPipeline(p), "DestroyPipeline")
	closed(b.DestroyBindGroup(g), "DestroyBindGroup")
}
