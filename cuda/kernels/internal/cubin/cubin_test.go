package cubin_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/kernels/internal/cubin"
)

// An image with one kernel, as the compiler lays it out.
type part struct {
	name string
	kind elf.SectionType
	link uint32
	data []byte
	size uint64 // of sections without data
}

func image(info, kernelInfo []byte, more ...part) []byte {
	strings := "\x00kernel\x00"
	symbols := make([]byte, 48)
	binary.LittleEndian.PutUint32(symbols[24:], 1)
	symbols[28] = byte(elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC))
	parts := []part{
		{},
		{name: ".shstrtab", kind: elf.SHT_STRTAB},
		{name: ".strtab", kind: elf.SHT_STRTAB, data: []byte(strings)},
		{name: ".symtab", kind: elf.SHT_SYMTAB, link: 2, data: symbols},
		{name: ".nv.info", kind: 0x70000000, link: 3, data: info},
		{name: ".nv.info.kernel", kind: 0x70000000, link: 3, data: kernelInfo},
		{name: ".nv.shared.kernel", kind: elf.SHT_NOBITS, size: 1040},
	}
	parts = append(parts, more...)
	names := []byte{0}
	at := make([]uint32, len(parts))
	for i, p := range parts[1:] {
		at[i+1] = uint32(len(names))
		names = append(append(names, p.name...), 0)
	}
	parts[1].data = names
	var body, headers bytes.Buffer
	for i, p := range parts {
		h := elf.Section64{Name: at[i], Type: uint32(p.kind), Off: uint64(64 + body.Len()), Size: uint64(len(p.data)), Link: p.link}
		if p.kind == elf.SHT_NOBITS {
			h.Size = p.size
		}
		if p.kind == elf.SHT_SYMTAB {
			h.Entsize = 24
		}
		binary.Write(&headers, binary.LittleEndian, h)
		body.Write(p.data)
	}
	header := elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: 190, Version: 1, Shoff: uint64(64 + body.Len()), Ehsize: 64,
		Shentsize: 64, Shnum: uint16(len(parts)), Shstrndx: 1,
	}
	var all bytes.Buffer
	binary.Write(&all, binary.LittleEndian, header)
	all.Write(body.Bytes())
	all.Write(headers.Bytes())
	return all.Bytes()
}

var (
	general = []byte{4, 0x2f, 8, 0, 1, 0, 0, 0, 40, 0, 0, 0, 4, 0x11, 8, 0, 1, 0, 0, 0, 16, 0, 0, 0, 4, 0x11, 8, 0, 99, 0, 0, 0, 1, 0, 0, 0}
	special = []byte{3, 0x1b, 0xff, 0, 4, 0x17, 12, 0, 0, 0, 0, 0, 0, 0, 0x30, 0, 0, 0xf0, 0xe1, 4, 4, 0x05, 12, 0, 128, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0}
)

func TestRead(t *testing.T) {
	got, err := cubin.Read(image(general, special))
	require.NoError(t, err)
	want := cubin.Kernel{Args: 0x138, Threads: 256, Registers: 40, Stack: 16, Static: 1040}
	require.Equal(t, map[string]cubin.Kernel{"kernel": want}, got)
	got, err = cubin.Read(image(general, special, part{name: ".nv.shared.reserved.0", kind: elf.SHT_NOBITS}))
	require.NoError(t, err)
	want.Static = 16
	require.Equal(t, map[string]cubin.Kernel{"kernel": want}, got)
}

func TestReadRefuses(t *testing.T) {
	_, err := cubin.Read([]byte("not an image"))
	require.Error(t, err)
	_, err = cubin.Read(image(general, special[:len(special)-1]))
	require.ErrorContains(t, err, "attribute 0x5 has 12 bytes, 11 are left")
	_, err = cubin.Read(image(general[:3], special))
	require.ErrorContains(t, err, "3 bytes are left")
}

func FuzzRead(f *testing.F) {
	f.Add(image(general, special))
	f.Fuzz(func(t *testing.T, b []byte) { cubin.Read(b) })
}

func TestReadPTX(t *testing.T) {
	got := cubin.ReadPTX([]byte(`
.visible .entry fill(
	.param .align 8 .b8 fill_param_0[56]
)
.maxntid 256
.minnctapersm 2
{
	ret;
}
.visible .entry wide(
	.param .align 64 .b8 wide_param_0[192]
)
{
}
`))
	require.Equal(t, map[string]cubin.Kernel{"fill": {Args: 56, Threads: 256}, "wide": {Args: 192}}, got)
}
