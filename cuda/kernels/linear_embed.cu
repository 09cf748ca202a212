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

// A block takes 512 quads of the output, a thread two of them.
__device__ void rows_of(const Embed& a) {
	rows::Place p[rows::Each];
	rows::places(a, p);
#pragma unroll
	for (uint32_t i = 0; i < rows::Each; i++) {
		uint32_t first, pos;
		if (p[i].left <= 0 || !rows::place_of(a.IDRow, p[i].item, first)) continue;
		uint32_t id = rows::at(a.IDs, p[i].item, 0, 0)[((int64_t)first + a.IDRow.Added + p[i].row) * a.IDs.Row];
		if (id >= a.Table.Rows) {
			atomic_or(a.Status, StatusIndex);
			id = 0;
		}
		float4 v = quad_of(a.Table, id, p[i].column);
		if (a.Positions.Values != nullptr) {
			if (!rows::place_of(a.Pos, p[i].item, pos)) continue;
			const float4 w = quad_of(a.Positions, pos + a.Pos.Added + p[i].row, p[i].column);
			v = {v.x + w.x, v.y + w.y, v.z + w.z, v.w + w.w};
		}
		rows::store(rows::at(a.Y, p[i]), p[i].left, a.Vectors & rows::VectorY, v);
	}
}

}  // namespace embed
