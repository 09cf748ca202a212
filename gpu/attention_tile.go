package gpu

import (
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/shaders"
)

// An attentionTile is the geometry of the kernel for many queries: across·down
// invocations, each of which has rowQuads·4 queries and keyQuads·4 keys of a tile, and
// slabs quads of the output. See attention.wgsl.
type attentionTile struct {
	across, down       int
	rowQuads, keyQuads int
	slabs              int
	depth              int // elements of a head that are staged at a time
	step               int // keys whose values are staged at a time
}

func (t attentionTile) queries() int { return 4 * t.down * t.rowQuads }
func (t attentionTile) keys() int    { return 4 * t.across * t.keyQuads }

// staged returns how many vectors the scores' operands take in workgroup memory.
func (t attentionTile) staged(relative bool) int {
	rows, columns := t.queries()/4, t.keys()/4
	if relative {
		return t.depth * (3*rows + 2*columns)
	}
	return t.depth * (rows + columns)
}

// exponentials returns how many vectors those of a part of a tile take.
func (t attentionTile) exponentials() int { return 4 * t.across * t.queries() / 4 }

// pool returns how many vectors of workgroup memory the kernel needs.
func (t attentionTile) pool(relative bool) int {
	return max(t.staged(relative), t.exponentials()+t.step*t.across*t.slabs, t.across*t.queries()/4)
}

// values adds the constants of the kernel.
func (t attentionTile) values(v shaders.Values, relative bool) {
	rows, columns := t.queries()/4, t.keys()/4
	v["Across"], v["Down"], v["RowQuads"], v["KeyQuads"], v["Slabs"] = t.across, t.down, t.rowQuads, t.keyQuads, t.slabs
	v["Depth"], v["Step"], v["Pool"] = t.depth, t.step, t.pool(relative)
	v["KeyPlace"], v["ValuePlace"] = t.depth*rows, t.exponentials()
	v["Q2Place"], v["RelativePlace"] = t.depth*(rows+columns), t.depth*(2*rows+columns)
	v["Banks"] = min(rows, 8)
	v["RowShuffle"], v["KeyShuffle"], v["RelativeShuffle"] = shuffle(rows), shuffle(columns), shuffle(rows+columns)
}

// shuffle returns by how much the places of rows shift from one quad of the depth to the
// next: not at all where that would leave the row.
func shuffle(places int) int {
	if places%8 == 0 {
		return 2
	}
	return 0
}

// waste is what a head of a dimension costs beside its products: padding, and stops.
func (t attentionTile) waste(dim int) int {
	const stop = 3
	chunks := roundUp(dim, t.depth) / t.depth
	return chunks*t.depth + stop*chunks
}

// chooseAttentionTile chooses a geometry that fits the device. How many keys a tile has,
// which decides about bits, follows from the head dimension and the device alone.
func chooseAttentionTile(dim, queries, slabs int, relative bool, limits driver.Limits) attentionTile {
	const enough = 256    // workgroups that keep a large device busy
	const roomy = 1 << 10 // vectors of workgroup memory that leave room for other workgroups
	memory := min(int(limits.MaxWorkgroupStorage), 32<<10) / 16
	t := attentionTile{across: 8, down: 8, rowQuads: 2, keyQuads: 2, slabs: 2}
	switch {
	case dim <= 32:
		t.slabs = 1
	case dim > 128:
		t.across = 32
	case dim > 64:
		t.across = 16
	}
	if t.across > 8 {
		t.down = 4
	}
	for t.down > 4 && roundUp(queries, t.queries())/t.queries()*slabs < enough {
		t.down /= 2
	}
	threads := int(min(limits.MaxInvocations, limits.MaxWorkgroupSizeX))
	for t.down > 1 && (t.across*t.down > threads || t.exponentials()+4*t.across*t.slabs > memory) {
		t.down /= 2
	}
	t.depth = 4
	for _, d := range []int{8, 12, 16} {
		wider := t
		wider.depth = d
		if wider.waste(dim) <= t.waste(dim) && wider.staged(relative) <= memory {
			t = wider
		}
	}
	t.step = 4
	room := max(min(memory, roomy), t.staged(relative))
	for t.step < 4*t.across && t.exponentials()+2*t.step*t.across*t.slabs <= room {
		t.step *= 2
	}
	return t
}
