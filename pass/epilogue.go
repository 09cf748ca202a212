package pass

import "fmt"

// An Epilogue is what becomes of a sum v (bias included) before it is stored as c.
// The zero Epilogue stores v.
type Epilogue struct {
	kind  EpilogueKind
	alpha float32
}

// An EpilogueKind is the formula of an [Epilogue].
type EpilogueKind uint8

// The formulas. Phi is the distribution function of the standard normal
// distribution; GELU is the erf form, not the tanh approximation.
const (
	KindNone         EpilogueKind = iota // c = v
	KindSiLU                             // c = v·sigmoid(v)
	KindReLU                             // c = v < 0 ? 0 : v, so NaN and −0 pass
	KindLeaky                            // c = v < 0 ? alpha·v : v
	KindResidual                         // c = c + alpha·v, in place
	KindGELU                             // c = v·Phi(v)
	KindGELUResidual                     // c = c + v·Phi(v), in place
	KindTanh                             // c = tanh(v)
	KindSigmoid                          // c = 1/(1 + exp(−v))
)

// The epilogues without a factor. Tanh and Sigmoid saturate for large values.
var (
	None         = Epilogue{}
	SiLU         = Epilogue{kind: KindSiLU}
	ReLU         = Epilogue{kind: KindReLU}
	GELU         = Epilogue{kind: KindGELU}
	GELUResidual = Epilogue{kind: KindGELUResidual}
	Tanh         = Epilogue{kind: KindTanh}
	Sigmoid      = Epilogue{kind: KindSigmoid}
)

// Leaky returns the epilogue v < 0 ? slope·v : v.
func Leaky(slope float32) Epilogue { return Epilogue{KindLeaky, slope} }

// Residual returns the epilogue c + a·v, in place on c.
func Residual(a float32) Epilogue { return Epilogue{KindResidual, a} }

// Kind returns the formula.
func (e Epilogue) Kind() EpilogueKind { return e.kind }

// Alpha returns the factor of Leaky and Residual, 0 for the others.
func (e Epilogue) Alpha() float32 { return e.alpha }

// InPlace reports whether the epilogue reads what the output held before.
func (e Epilogue) InPlace() bool { return e.kind == KindResidual || e.kind == KindGELUResidual }

var epilogueNames = [...]string{"none", "silu", "relu", "leaky", "residual", "gelu", "gelu-residual", "tanh", "sigmoid"}

// String returns the name of the epilogue with its factor: "silu", "leaky(0.01)".
func (e Epilogue) String() string {
	if int(e.kind) >= len(epilogueNames) {
		return fmt.Sprintf("EpilogueKind(%d)", e.kind)
	}
	if e.kind == KindLeaky || e.kind == KindResidual {
		return fmt.Sprintf("%s(%v)", epilogueNames[e.kind], e.alpha)
	}
	return epilogueNames[e.kind]
}

// ParseEpilogue returns the epilogue of a name without factor, as in
// [EpilogueKind]'s list ("none", "leaky", "gelu-residual", …), and a factor, which
// only leaky and residual take.
func ParseEpilogue(name string, alpha float32) (Epilogue, error) {
	for k, s := range epilogueNames {
		if s != name {
			continue
		}
		e := Epilogue{kind: EpilogueKind(k)}
		if e.kind == KindLeaky || e.kind == KindResidual {
			e.alpha = alpha
		} else if alpha != 0 {
			return Epilogue{}, fmt.Errorf("pass: epilogue %q takes no factor, given %v: %w", name, alpha, ErrInvalid)
		}
		return e, nil
	}
	return Epilogue{}, fmt.Errorf("pass: epilogue %q: want one of %v: %w", name, epilogueNames, ErrInvalid)
}
