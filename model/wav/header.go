package wav

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// soxPipe is the data length that SoX writes where it cannot seek back to correct it.
const soxPipe = 0x7FFFF000

// unknownSize is the size of a chunk that reaches to the end of the input.
const unknownSize = -1

// A header walks over the chunks of a file up to its samples.
type header struct {
	src      *source
	order    binary.ByteOrder
	wide     bool             // RF64: sizes may stand in the ds64 chunk
	sizes    map[string]int64 // from the ds64 chunk
	riffEnd  int64            // where the file ends according to its header, -1 if not told
	format   Format
	hasFmt   bool
	hasData  bool
	dataPos  int64
	dataSize int64
	held     []byte // the data, where they come before the format and cannot be sought
}

// read parses up to the first sample and leaves the source there. It returns the size
// of the data, or unknownSize.
func (h *header) read() (int64, error) {
	if err := h.magic(); err != nil {
		return 0, err
	}
	for !h.hasFmt || !h.hasData {
		var head [8]byte
		b, err := h.src.next(head[:])
		if err != nil {
			return 0, fmt.Errorf("read a chunk: %w", err)
		}
		if len(b) < len(head) {
			return 0, h.missing()
		}
		id, size := string(b[:4]), int64(h.order.Uint32(b[4:]))
		if err := h.chunk(id, size); err != nil {
			return 0, err
		}
	}
	return h.dataSize, h.rewind()
}

// magic checks the first twelve bytes.
func (h *header) magic() error {
	var head [12]byte
	b, err := h.src.next(head[:])
	if err != nil {
		return fmt.Errorf("read the header: %w", err)
	}
	if len(b) == 0 {
		return fmt.Errorf("empty input: %w", pass.ErrInvalid)
	}
	h.order = binary.LittleEndian
	kind := string(b[:min(4, len(b))])
	switch kind {
	case "RIFF":
	case "RIFX":
		h.order = binary.BigEndian
	case "RF64", "BW64":
		h.wide = true
	default:
		return foreign(b)
	}
	if len(b) < len(head) {
		return fmt.Errorf("%s header of %d bytes, want 12: %w", kind, len(b), pass.ErrInvalid)
	}
	if form := string(b[8:12]); form != "WAVE" {
		return fmt.Errorf("%s file of form %q, want WAVE: %w", kind, form, pass.ErrUnsupported)
	}
	h.riffEnd = -1
	if size := h.order.Uint32(b[4:]); size != 0 && size < streamedFrom && !h.wide {
		h.riffEnd = 8 + int64(size)
	}
	return nil
}

// streamedFrom is the smallest length field that stands for "not known": writers put
// 2^32−1 there, less the size of their header or not.
const streamedFrom = math.MaxUint32 - 255

// chunk handles the chunk whose header was just read.
func (h *header) chunk(id string, size int64) error {
	told := false
	if h.wide && size == math.MaxUint32 {
		if wide, ok := h.sizes[id]; ok {
			size, told = wide, true
		}
	}
	switch {
	case id == "ds64" && h.wide && h.sizes == nil:
		return h.readSizes(size)
	case id == "fmt " && !h.hasFmt:
		return h.readFormat(size)
	case id == "data" && !h.hasData:
		return h.findData(size, told)
	}
	return h.finish(size, size)
}

// finish skips what is left of a chunk of the given size, and its padding.
func (h *header) finish(left, size int64) error {
	if size < 0 {
		left = math.MaxInt64 / 2
	}
	if err := h.src.skip(left); err != nil {
		return fmt.Errorf("skip a chunk: %w", err)
	}
	if size%2 == 0 {
		return nil
	}
	// Some writers leave the padding out.
	switch string(h.src.peek(4)) {
	case "fmt ", "data", "LIST", "fact":
		return nil
	}
	if err := h.src.skip(1); err != nil {
		return fmt.Errorf("skip a chunk: %w", err)
	}
	return nil
}

// readSizes reads the ds64 chunk (EBU Tech 3306): RIFF size, data size, sample count,
// then a table of further chunks.
func (h *header) readSizes(size int64) error {
	h.sizes = map[string]int64{}
	var b [28]byte
	got, err := h.src.next(b[:min(size, int64(len(b)))])
	if err != nil {
		return fmt.Errorf("read the ds64 chunk: %w", err)
	}
	if len(got) < 24 {
		return fmt.Errorf("ds64 chunk of %d bytes, want at least 24: %w", len(got), pass.ErrInvalid)
	}
	// A size beyond any file reads as "not known".
	h.sizes["data"] = unknownSize
	if wide := h.order.Uint64(got[8:]); wide <= math.MaxInt64/2 {
		h.sizes["data"] = int64(wide)
	}
	left := size - int64(len(got))
	if len(got) == len(b) {
		for range min(h.order.Uint32(got[24:]), 64) {
			var entry [12]byte
			if left < int64(len(entry)) {
				break
			}
			e, err := h.src.next(entry[:])
			if err != nil {
				return fmt.Errorf("read the ds64 chunk: %w", err)
			}
			left -= int64(len(e))
			if len(e) < len(entry) {
				break
			}
			if id, wide := string(e[:4]), h.order.Uint64(e[4:]); id != "data" && wide <= math.MaxInt64/2 {
				h.sizes[id] = int64(wide)
			}
		}
	}
	return h.finish(left, size)
}

func (h *header) readFormat(size int64) error {
	var b [40]byte
	want := min(size, int64(len(b)))
	got, err := h.src.next(b[:want])
	if err != nil {
		return fmt.Errorf("read the fmt chunk: %w", err)
	}
	if int64(len(got)) < want {
		return fmt.Errorf("input ends within the fmt chunk: %w", pass.ErrInvalid)
	}
	h.format, err = parseFormat(got, h.order)
	if err != nil {
		return err
	}
	h.hasFmt = true
	if h.hasData {
		return nil // the samples came first, nothing else is of interest
	}
	return h.finish(size-want, size)
}

// findData is called at the first byte of the samples. wide says that their size is
// from the ds64 chunk, where the values that stand for "not known" in 32 bits are sizes.
func (h *header) findData(size int64, wide bool) error {
	h.hasData = true
	streamed := size == unknownSize || size == 0 && !h.emptyData() ||
		!wide && (size == soxPipe || size >= streamedFrom)
	if streamed {
		size = unknownSize
	}
	h.dataPos, h.dataSize = h.src.pos, size
	if h.hasFmt {
		return nil
	}
	if streamed {
		return fmt.Errorf("data of unknown length, and no fmt chunk before: %w", pass.ErrInvalid)
	}
	if h.src.seeker != nil {
		return h.finish(size, size)
	}
	held, err := h.src.hold(size)
	if err != nil {
		return fmt.Errorf("read the samples: %w", err)
	}
	h.held = held
	return h.finish(0, size)
}

// emptyData decides whether a data length of 0 is true: it is if, within the length
// that the RIFF header gives, another chunk follows.
func (h *header) emptyData() bool {
	next := h.src.pos + 8
	if h.riffEnd < next {
		return false
	}
	b := h.src.peek(8)
	if len(b) < 8 || next+int64(h.order.Uint32(b[4:])) > h.riffEnd {
		return false
	}
	for _, c := range b[:4] {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// rewind puts the source at the first sample again, if it went past the data.
func (h *header) rewind() error {
	if h.src.pos == h.dataPos {
		return nil
	}
	if h.src.seeker != nil {
		if err := h.src.seek(h.dataPos); err != nil {
			return fmt.Errorf("go back to the samples: %w", err)
		}
		return nil
	}
	h.src.r.Reset(bytes.NewReader(h.held))
	h.src.pos = h.dataPos
	return nil
}

// missing is the error for an input that ended before all was found.
func (h *header) missing() error {
	switch {
	case h.hasFmt:
		return fmt.Errorf("no data chunk: %w", pass.ErrInvalid)
	case h.hasData:
		return fmt.Errorf("no fmt chunk: %w", pass.ErrInvalid)
	}
	return fmt.Errorf("neither a fmt nor a data chunk: %w", pass.ErrInvalid)
}
