// Embed.
#include "rows.cuh"

namespace embed {

// Types of the weights of a table, as in linear_embed.go.
constexpr uint32_t TableF32 = 0, TableF16 = 1, TableQ8 = 3;

// quad_of returns four columns of a row of a table. Rows are padded, so that they can be
// read to their ends.
__device__ inline float4 quad_of(const RowTable& t, uint32_t row, int64_t column) {
	const int64_t at = row * t.Stride + column;
	switch (t.Type) {
	case TableF32:
		return load4(reinterpret_cast<const float*>(t.Values) + at);
	case TableQ8: {
		const int32_t four = (int32_t)t.Values[at / 4];
		const float scale = to_float(t.Scales[at / 32]);
		return {scale * (four << 24 >> 24), scale * (four << 16 >> 24), scale * (four << 8 >> 24), scale * (four >> 24)};
	}
	}
	const float2 words = load2(reinterpret_cast<const float*>(t.Values) + at / 2);
	const uint32_t a = bits_of(words.x), b = bits_of(words.y);
	const float2 low = t.Type == TableF16 ? unpack_half(a) : unpack_bf16(a);
	const float2 high = t.Type == TableF16 ? unpack_half(b) : unpack_bf16(b);
	return {low.x, low.y, high.x, high.y};
}

// row_of returns the quad of the table for a place of the output.
__device__ inline float4 row_of(const Embed& a, const rows::Place& p, uint32_t first) {
	uint32_t id = rows::at(a.IDs, p.item, 0, 0)[((int64_t)first + a.IDRow.Added + p.row) * a.IDs.Row];
	if (id >= a.Table.Rows) {
		atomic_or(a.Status, StatusIndex);
		id = 0;
	}
	return quad_of(a.Table, id, p.column);
}

// A block takes 512 quads of the output, a thread two of them.
__device__ void rows_of(const Embed& a) {
	rows::Place p[rows::Each];
	rows::places(a, p);
	float4 v[rows::Each], w[rows::Each];
#pragma unroll
	for (uint32_t i = 0; i < rows::Each; i++) {
		w[i] = {0.0f, 0.0f, 0.0f, 0.0f};
		uint32_t first, pos = 0;
		const bool found = p[i].left > 0 && rows::place_of(a.IDRow, p[i].item, first) && rows::place_of(a.Pos, p[i].item, pos);
		if (!found) {
			p[i].left = 0;
			continue;
		}
		v[i] = row_of(a, p[i], first);
		if (a.Positions.Values != nullptr) w[i] = quad_of(a.Positions, pos + a.Pos.Added + p[i].row, p[i].column);
	}
#pragma unroll
	for (uint32_t i = 0; i < rows::Each; i++) {
		if (p[i].left <= 0) continue;
		if (a.Positions.Values != nullptr) v[i] = {v[i].x + w[i].x, v[i].y + w[i].y, v[i].z + w[i].z, v[i].w + w[i].w};
		rows::store(rows::at(a.Y, p[i]), p[i].left, a.Vectors & rows::VectorY, v[i]);
	}
}

}  // namespace embed
