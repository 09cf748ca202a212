package cpu

// block is how many products are summed in float32 before the sum goes to float64. At
// 256 a block's error is about 1e-6 of Σ|products| at worst and far less on average,
// and a block of a panel (8 KiB) stays in the nearest cache for all rows.
const block = 256

// dot8 adds a·w to acc: the sums over all inputs, for the eight outputs of a panel.
// w has the length of a. The order of a sum depends on its length only.
func dot8(acc *[lanes]float64, a []float32, w []panelRow) {
	for len(w) > block {
		dotBlock(acc, a[:block], w[:block])
		a, w = a[block:], w[block:]
	}
	dotBlock(acc, a, w)
}

// dotBlock is dot8 over a block. Eight sums are enough to hide the latency of an
// addition, and few enough to stay in registers; taking four inputs in a turn keeps
// the compiler, which moves the last addition to each sum to the end of a turn, from
// spilling one of them in every step, and so does loading each input into a variable
// where it is first needed.
func dotBlock(acc *[lanes]float64, a []float32, w []panelRow) {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(w) >= 4 && len(a) >= 4 {
		x, v := (*[4]float32)(a), (*[4]panelRow)(w)
		x0 := x[0]
		s0 += x0 * v[0][0]
		s1 += x0 * v[0][1]
		s2 += x0 * v[0][2]
		s3 += x0 * v[0][3]
		s4 += x0 * v[0][4]
		s5 += x0 * v[0][5]
		s6 += x0 * v[0][6]
		s7 += x0 * v[0][7]

		x1 := x[1]
		s0 += x1 * v[1][0]
		s1 += x1 * v[1][1]
		s2 += x1 * v[1][2]
		s3 += x1 * v[1][3]
		s4 += x1 * v[1][4]
		s5 += x1 * v[1][5]
		s6 += x1 * v[1][6]
		s7 += x1 * v[1][7]

		x2 := x[2]
		s0 += x2 * v[2][0]
		s1 += x2 * v[2][1]
		s2 += x2 * v[2][2]
		s3 += x2 * v[2][3]
		s4 += x2 * v[2][4]
		s5 += x2 * v[2][5]
		s6 += x2 * v[2][6]
		s7 += x2 * v[2][7]

		x3 := x[3]
		s0 += x3 * v[3][0]
		s1 += x3 * v[3][1]
		s2 += x3 * v[3][2]
		s3 += x3 * v[3][3]
		s4 += x3 * v[3][4]
		s5 += x3 * v[3][5]
		s6 += x3 * v[3][6]
		s7 += x3 * v[3][7]
		a, w = a[4:], w[4:]
	}
	for i := range min(len(a), len(w)) {
		x, v := a[i], &w[i]
		s0 += x * v[0]
		s1 += x * v[1]
		s2 += x * v[2]
		s3 += x * v[3]
		s4 += x * v[4]
		s5 += x * v[5]
		s6 += x * v[6]
		s7 += x * v[7]
	}
	acc[0] += float64(s0)
	acc[1] += float64(s1)
	acc[2] += float64(s2)
	acc[3] += float64(s3)
	acc[4] += float64(s4)
	acc[5] += float64(s5)
	acc[6] += float64(s6)
	acc[7] += float64(s7)
}

// dotFine is dot8 with sums that go to float64 after four products. That takes a quarter
// longer, and is for sums whose errors grow: a recurrence feeds what it rounds to itself.
func dotFine(acc *[lanes]float64, a []float32, w []panelRow) {
	s0, s1, s2, s3, s4, s5, s6, s7 := acc[0], acc[1], acc[2], acc[3], acc[4], acc[5], acc[6], acc[7]
	for len(w) >= 4 && len(a) >= 4 {
		x, v := (*[4]float32)(a), (*[4]panelRow)(w)
		x0, x1, x2, x3 := x[0], x[1], x[2], x[3]
		s0 += float64(x0*v[0][0] + x1*v[1][0] + x2*v[2][0] + x3*v[3][0])
		s1 += float64(x0*v[0][1] + x1*v[1][1] + x2*v[2][1] + x3*v[3][1])
		s2 += float64(x0*v[0][2] + x1*v[1][2] + x2*v[2][2] + x3*v[3][2])
		s3 += float64(x0*v[0][3] + x1*v[1][3] + x2*v[2][3] + x3*v[3][3])
		s4 += float64(x0*v[0][4] + x1*v[1][4] + x2*v[2][4] + x3*v[3][4])
		s5 += float64(x0*v[0][5] + x1*v[1][5] + x2*v[2][5] + x3*v[3][5])
		s6 += float64(x0*v[0][6] + x1*v[1][6] + x2*v[2][6] + x3*v[3][6])
		s7 += float64(x0*v[0][7] + x1*v[1][7] + x2*v[2][7] + x3*v[3][7])
		a, w = a[4:], w[4:]
	}
	for i := range min(len(a), len(w)) {
		x, v := a[i], &w[i]
		s0 += float64(x * v[0])
		s1 += float64(x * v[1])
		s2 += float64(x * v[2])
		s3 += float64(x * v[3])
		s4 += float64(x * v[4])
		s5 += float64(x * v[5])
		s6 += float64(x * v[6])
		s7 += float64(x * v[7])
	}
	*acc = [lanes]float64{s0, s1, s2, s3, s4, s5, s6, s7}
}
