package cases

// Recipe returns n values in [offset − scale, offset + scale) that depend on the name
// and the seed alone: splitmix64 from the FNV-1a hash of the name, 24 bits a value.
// The order of the roundings is part of the recipe.
func Recipe(name string, seed uint64, n int, scale, offset float32) []float32 {
	values := make([]float32, n)
	for i := range values {
		v := float32(recipeWord(name, seed, i)>>40)/(1<<23) - 1
		values[i] = float32(v*scale) + offset // no fused multiply-add
	}
	return values
}

// RecipeWords returns n random words that depend on the name and the seed alone.
func RecipeWords(name string, seed uint64, n int) []uint32 {
	words := make([]uint32, n)
	for i := range words {
		words[i] = uint32(recipeWord(name, seed, i) >> 32)
	}
	return words
}

func recipeWord(name string, seed uint64, i int) uint64 {
	const golden = 0x9E3779B97F4A7C15
	hash := uint64(0xCBF29CE484222325)
	for k := range len(name) {
		hash = (hash ^ uint64(name[k])) * 0x100000001B3
	}
	z := (hash ^ seed*golden) + uint64(i+1)*golden
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
