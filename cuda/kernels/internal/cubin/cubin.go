// Package cubin reads what compiled images say of their kernels: cubins, which are ELF
// files with NVIDIA's sections, and PTX.
package cubin

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A Kernel is a function that can be launched.
type Kernel struct {
	Args      int // bytes of parameters
	Threads   int // most of a block
	Registers int // of a thread; 0 in PTX
	Stack     int // bytes of a thread, as the calling convention counts it; 0 in PTX
	Static    int // bytes of shared memory; 0 in PTX
}

// Attributes of the sections .nv.info.
const (
	attrMaxThreads = 0x05
	attrFrameSize  = 0x11
	attrParam      = 0x17
	attrRegisters  = 0x2f
)

const infoPrefix = ".nv.info."

// From 9.0 on the first bytes of shared memory are the system's. Sections count them,
// limits do not.
const systemShared = 1 << 10

// Read returns the kernels of a cubin by name.
func Read(image []byte) (map[string]Kernel, error) {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, fmt.Errorf("cubin: %w", err)
	}
	defer f.Close()
	kernels := map[string]Kernel{}
	reserved := uint64(0)
	if f.Section(".nv.shared.reserved.0") != nil {
		reserved = systemShared
	}
	for _, s := range f.Sections {
		name, ok := strings.CutPrefix(s.Name, infoPrefix)
		if !ok {
			continue
		}
		k := Kernel{}
		err := attributes(s, func(attr byte, value []byte) {
			switch {
			case attr == attrParam && len(value) >= 12: // kernels have one; its size is in the upper bits
				k.Args = int(binary.LittleEndian.Uint32(value[8:]) >> 18)
			case attr == attrMaxThreads && len(value) >= 12:
				k.Threads = 1
				for i := range 3 {
					k.Threads *= int(binary.LittleEndian.Uint32(value[4*i:]))
				}
			}
		})
		if err != nil {
			return nil, fmt.Errorf("cubin: %s: %w", s.Name, err)
		}
		if shared := f.Section(".nv.shared." + name); shared != nil {
			k.Static = int(shared.Size - min(shared.Size, reserved))
		}
		kernels[name] = k
	}
	symbols, err := f.Symbols()
	if err != nil {
		return nil, fmt.Errorf("cubin: %w", err)
	}
	info := f.Section(".nv.info")
	if info == nil {
		return nil, errors.New("cubin: no section .nv.info")
	}
	err = attributes(info, func(attr byte, value []byte) {
		if len(value) < 8 {
			return
		}
		// Symbols are numbered from 1: the first, which has no name, is not in the slice.
		i := int(binary.LittleEndian.Uint32(value)) - 1
		if i < 0 || i >= len(symbols) {
			return
		}
		k, ok := kernels[symbols[i].Name]
		if !ok {
			return
		}
		n := int(binary.LittleEndian.Uint32(value[4:]))
		switch attr {
		case attrRegisters:
			k.Registers = n
		case attrFrameSize:
			k.Stack = n
		}
		kernels[symbols[i].Name] = k
	})
	if err != nil {
		return nil, fmt.Errorf("cubin: %s: %w", info.Name, err)
	}
	return kernels, nil
}

// attributes calls f with each attribute of a section: a byte of form, a byte of kind, and
// 16 bits, which are the value, or with form 4 the length of the value that follows.
func attributes(s *elf.Section, f func(attr byte, value []byte)) error {
	b, err := s.Data()
	if err != nil {
		return err
	}
	for len(b) > 0 {
		if len(b) < 4 {
			return fmt.Errorf("%d bytes are left, want 4 or more", len(b))
		}
		form, attr, value := b[0], b[1], b[2:4]
		b = b[4:]
		if form == 4 {
			n := int(binary.LittleEndian.Uint16(value))
			if n > len(b) {
				return fmt.Errorf("attribute %#x has %d bytes, %d are left", attr, n, len(b))
			}
			value, b = b[:n], b[n:]
		}
		f(attr, value)
	}
	return nil
}

var (
	entry   = regexp.MustCompile(`(?s)\.visible \.entry (\w+)\(\s*\.param [^,)]*\[(\d+)\]\s*\)\s*(.*?)\{`)
	threads = regexp.MustCompile(`\.maxntid (\d+)`)
)

// ReadPTX returns the kernels of PTX by name, which take one struct each.
func ReadPTX(text []byte) map[string]Kernel {
	kernels := map[string]Kernel{}
	for _, m := range entry.FindAllSubmatch(text, -1) {
		k := Kernel{Args: number(m[2])}
		if t := threads.FindSubmatch(m[3]); t != nil {
			k.Threads = number(t[1])
		}
		kernels[string(m[1])] = k
	}
	return kernels
}

func number(digits []byte) int {
	n, _ := strconv.Atoi(string(digits))
	return n
}
