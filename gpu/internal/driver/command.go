package driver

// Op is what a Command does.
type Op uint8

// The operations.
const (
	OpDispatch  Op = iota + 1 // run a kernel
	OpCopy                    // copy between two buffers
	OpClear                   // fill with zeros
	OpTimestamp               // write a time stamp
	OpResolve                 // copy time stamps into a buffer
)

// Command is one step of a Submit. It is flat, so that a list of them can be kept,
// patched and submitted again without an allocation. Which fields count depends on Op;
// the functions below fill them.
type Command struct {
	Op       Op
	Dynamic  uint8 // how many of Offsets are given
	Pipeline PipelineID
	Group    BindGroupID
	X, Y, Z  uint32             // workgroups
	Offsets  [MaxDynamic]uint32 // of the pipeline's UniformDynamic bindings, in order

	Src, Dst             BufferID
	SrcOffset, DstOffset uint64
	Size                 uint64

	Query      QueryID
	QueryIndex uint32 // the stamp, or the first one
	QueryCount uint32 // how many stamps
}

// Dispatch runs a pipeline over x·y·z workgroups. offsets are added to the bindings of
// kind UniformDynamic; there are as many as the pipeline has, at most MaxDynamic.
func Dispatch(p PipelineID, g BindGroupID, x, y, z uint32, offsets ...uint32) Command {
	c := Command{Op: OpDispatch, Pipeline: p, Group: g, X: x, Y: y, Z: z}
	copy(c.Offsets[:], offsets)
	c.Dynamic = uint8(min(len(offsets), MaxDynamic+1))
	return c
}

// Copy copies size bytes between two different buffers. Offsets and size are multiples
// of 4.
func Copy(dst BufferID, dstOffset uint64, src BufferID, srcOffset, size uint64) Command {
	return Command{Op: OpCopy, Dst: dst, DstOffset: dstOffset, Src: src, SrcOffset: srcOffset, Size: size}
}

// Clear writes size zero bytes. Offset and size are multiples of 4, size above 0.
func Clear(dst BufferID, offset, size uint64) Command {
	return Command{Op: OpClear, Dst: dst, DstOffset: offset, Size: size}
}

// Timestamp writes a stamp when the commands before it are done.
func Timestamp(q QueryID, index uint32) Command {
	return Command{Op: OpTimestamp, Query: q, QueryIndex: index}
}

// ResolveTimestamps copies count stamps of 8 bytes each into a buffer. offset is a
// multiple of 256.
func ResolveTimestamps(dst BufferID, offset uint64, q QueryID, first, count uint32) Command {
	return Command{Op: OpResolve, Dst: dst, DstOffset: offset, Query: q, QueryIndex: first, QueryCount: count}
}
