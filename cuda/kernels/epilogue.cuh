// What becomes of a sum before it is stored: pass.Epilogue.
#pragma once

#include "device.cuh"

// Kinds, in the order of pass.EpilogueKind.
enum EpilogueKind : uint32_t {
	KindNone,
	KindSiLU,
	KindReLU,
	KindLeaky,
	KindResidual,
	KindGELU,
	KindGELUResidual,
	KindTanh,
	KindSigmoid,
};

// in_place reports whether apply reads what the output held before.
__device__ inline bool in_place(Epilogue e) { return e.Kind == KindResidual || e.Kind == KindGELUResidual; }

// apply returns the epilogue of a sum v, bias included, where before was stored. The
// comparisons are written so that NaN and −0 pass.
__device__ inline float apply(Epilogue e, float v, float before) {
	switch (e.Kind) {
	case KindSiLU:
		return silu(v);
	case KindReLU:
		return v < 0.0f ? 0.0f : v;
	case KindLeaky:
		return v < 0.0f ? e.Alpha * v : v;
	case KindResidual:
		return fmaf(e.Alpha, v, before);
	case KindGELU:
		return gelu(v);
	case KindGELUResidual:
		return before + gelu(v);
	case KindTanh:
		return tanhf(v);
	case KindSigmoid:
		return sigmoid(v);
	}
	return v;
}
