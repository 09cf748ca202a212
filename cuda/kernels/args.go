package kernels

// Pointers to device memory, as parameters of kernels: the generated structs have
// float*, uint32_t*, half* and int8_t* in their place.
type (
	F32 uint64
	U32 uint64
	F16 uint64
	I8  uint64
)

// A View is an argument of F32 elements: rows of a batch, strides in elements.
type View struct {
	P          F32
	Row, Batch int64
}

// Words is a View of U32 elements.
type Words struct {
	P          U32
	Row, Batch int64
}

// An Index is a [pass.Index]: Added if P is nil, else P[Each·item] + Added. Of the
// numbers on the device those from Valid on are out of range; a kernel takes 0 for them
// and sets StatusIndex in the word at Status.
type Index struct {
	P, Status          U32
	Added, Valid, Each uint32
	_                  uint32
}

// Items is a [pass.Items]: Usual for every item if P is nil, else P[item]. Numbers above
// Usual are out of range; a kernel takes Usual for them and sets StatusIndex.
type Items struct {
	P, Status U32
	Usual     uint32
	_         uint32
}

// An Epilogue is a [pass.Epilogue].
type Epilogue struct {
	Kind  uint32 // a pass.EpilogueKind
	Alpha float32
}

// A TensorMap is what a bulk tensor copy is given, made by the driver; see
// driver.TensorMap. In a struct it lies at a multiple of 64 bytes, and such a struct is a
// multiple of 64 bytes long.
type TensorMap [128]byte

// Bits of the status word.
const (
	StatusIndex  = 1 // an index, a length, an id or a row is beyond its range
	StatusNarrow = 2 // a finite value would become infinite in an F16 cache
)
