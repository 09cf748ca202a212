package kernels

// An Append stores rows of keys and values in a cache, [item][head][position][Dim].
type Append struct {
	K, V             View
	Keys, Values     U32 // F32 or F16, as the kernel says
	At               Index
	Status           U32 // where F16 caches say that a value is too large
	Rows, Heads, Dim uint32
	Capacity         uint32
}

var cache = Family{"cache", []Entry{
	{Name: "cache_append", Call: "cache::append<float>", Args: Append{}, Threads: 256},
	{Name: "cache_append_half", Call: "cache::append<half>", Args: Append{}, Threads: 256},
}}
