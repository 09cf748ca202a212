package main

import (
	"fmt"
	"strings"

	"github.com/tandem-gpu/tandem/examples/internal/kernel"
	"github.com/tandem-gpu/tandem/pass"
)

// gemmCases are products rows × k × n with weights of each type. 1500 rows are 30 seconds
// of speech; 1280 → 5120 and 384 → 1536 are feed-forward layers of the largest and the
// smallest Whisper.
var gemmCases = []benchmarkCase{
	gemm(512, 512, 512, pass.F32),
	gemm(512, 512, 512, pass.F16),
	gemm(512, 512, 512, pass.Q8_0),
	gemm(1500, 384, 1536, pass.F32),
	gemm(1500, 384, 1536, pass.F16),
	gemm(1500, 384, 1536, pass.Q8_0),
	gemm(1500, 1280, 5120, pass.F32),
	gemm(1500, 1280, 5120, pass.F16),
	gemm(1500, 1280, 5120, pass.Q8_0),
	gemm(4096, 4096, 4096, pass.F32),
	gemm(4096, 4096, 4096, pass.F16),
	gemm(4096, 4096, 4096, pass.Q8_0),
}

// matvecCases are products n × k of one row: what a decoder does for each token. The
// first is Whisper's vocabulary.
var matvecCases = []benchmarkCase{
	matvec(1280, 1280, pass.F32),
	matvec(1280, 1280, pass.F16),
	matvec(1280, 1280, pass.Q8_0),
	matvec(51865, 1280, pass.F16),
	matvec(51865, 1280, pass.Q8_0),
}

func gemm(rows, k, n int, t pass.DType) benchmarkCase {
	name := fmt.Sprintf("%dx%dx%d/%s", rows, k, n, typeName(t))
	return kernelCase(name, fmt.Sprintf("%d rows, %d→%d, W %v", rows, k, n, t), kernel.Gemm(rows, k, n, t))
}

func matvec(n, k int, t pass.DType) benchmarkCase {
	name := fmt.Sprintf("%dx%d/%s", n, k, typeName(t))
	return kernelCase(name, fmt.Sprintf("1 row, %d→%d, W %v", k, n, t), kernel.Gemm(1, k, n, t))
}

func typeName(t pass.DType) string { return strings.ToLower(strings.TrimSuffix(t.String(), "_0")) }
