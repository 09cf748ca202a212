package kernels

// Bits of Vectors in the parameters of kernels that take rows or elements: which views
// are aligned for vectors of four elements, in all their rows.
const (
	VectorX = 1
	VectorY = 2
	VectorB = 4 // a second input, or a second output
)

// A LayerNorm normalises Count rows, Rows of each item, into Y. Kernels of halves store them
// there only if it is not the zero view, and as Halves. With Rotated, which is not the zero view, heads of Head columns are
// stored a second time, the first 2·Half of each turned by the row of Table at the row's
// position.
type LayerNorm struct {
	X, Y, Rotated     View
	Halves            Halves
	Gain, Bias, Table F32 // Bias: nil, or beside whole vectors of gains
	Pos               Index
	Count, Rows, Cols uint32
	Vectors           uint32
	Head, Half        uint32
	Eps               float32
	_                 uint32
}

// An L2Norm scales Count rows, Rows of each item, to length one.
type L2Norm struct {
	X, Y              View
	Count, Rows, Cols uint32
	Vectors           uint32
	Eps               float32
	_                 uint32
}

// A GroupNorm normalises items of Rows × Cols, which are cut into Chunks of Chunk rows.
// Parts has for each chunk its mean in two parts, its sum of squared distances from it,
// and how many elements it has.
type GroupNorm struct {
	X, Y              View
	Gain, Bias, Parts F32
	Lengths           Items
	Rows, Cols        uint32
	Chunk, Chunks     uint32
	Vectors           uint32
	Eps               float32
}

// A PoolNorm pools and normalises the channels of items. Time is cut into Chunks of Chunk
// pooled rows; a block takes a chunk of Across channels, a power of two, 32 at most, of
// which there are Blocks. Parts is as in GroupNorm, for each chunk and channel.
type PoolNorm struct {
	X, Y                 View
	Gain, Bias, Parts    F32
	Lengths              Items
	Rows, Pooled, Pool   uint32
	Cols, Across, Blocks uint32
	Chunk, Chunks        uint32
	Abs                  uint32
	Eps, Alpha           float32 // Alpha: of leaky; 1 if there is none
	_                    uint32
}

var norm = Family{"norm", []Entry{
	{Name: "norm_layer_384", Call: "norms::layer<128, 32, 3, false>", Args: LayerNorm{}, Threads: 128},
	{Name: "norm_layer_384_halves", Call: "norms::layer<128, 32, 3, true>", Args: LayerNorm{}, Threads: 128},
	{Name: "norm_layer_768", Call: "norms::layer<128, 32, 6, false>", Args: LayerNorm{}, Threads: 128},
	{Name: "norm_layer_768_halves", Call: "norms::layer<128, 32, 6, true>", Args: LayerNorm{}, Threads: 128},
	{Name: "norm_layer_1280", Call: "norms::layer<128, 32, 10, false>", Args: LayerNorm{}, Threads: 128},
	{Name: "norm_layer_1280_halves", Call: "norms::layer<128, 32, 10, true>", Args: LayerNorm{}, Threads: 128},
	{Name: "norm_layer_4096", Call: "norms::layer<256, 256, 4, false>", Args: LayerNorm{}, Threads: 256},
	{Name: "norm_layer_4096_halves", Call: "norms::layer<256, 256, 4, true>", Args: LayerNorm{}, Threads: 256},
	{Name: "norm_layer_long", Call: "norms::layer_long<512>", Args: LayerNorm{}, Threads: 512},
	{Name: "norm_length_512", Call: "norms::length<128, 32, 4>", Args: L2Norm{}, Threads: 128},
	{Name: "norm_length_4096", Call: "norms::length<256, 256, 4>", Args: L2Norm{}, Threads: 256},
	{Name: "norm_length_long", Call: "norms::length_long<512>", Args: L2Norm{}, Threads: 512},
	{Name: "norm_group_moments", Call: "norms::group_moments", Args: GroupNorm{}, Threads: 256},
	{Name: "norm_group_apply", Call: "norms::group_apply", Args: GroupNorm{}, Threads: 256},
	{Name: "norm_pool_moments_1", Call: "norms::pool_moments<1>", Args: PoolNorm{}, Threads: 256},
	{Name: "norm_pool_moments_3", Call: "norms::pool_moments<3>", Args: PoolNorm{}, Threads: 256},
	{Name: "norm_pool_moments_any", Call: "norms::pool_moments<0>", Args: PoolNorm{}, Threads: 256},
	{Name: "norm_pool_apply_1", Call: "norms::pool_apply<1>", Args: PoolNorm{}, Threads: 256},
	{Name: "norm_pool_apply_3", Call: "norms::pool_apply<3>", Args: PoolNorm{}, Threads: 256},
	{Name: "norm_pool_apply_any", Call: "norms::pool_apply<0>", Args: PoolNorm{}, Threads: 256},
}}
