package shaders_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/shaders"
)

// Sums of products that round alike, contracted or not.
var exact = []struct {
	shader string
	line   *regexp.Regexp
	why    string
}{
	{"embed", regexp.MustCompile(`^v \+= (position_row\(|y\[)|= y\[at .* \+ v\.[xyzw]; \}$`), "a byte times a scale of type F16 has 18 bits at most"},
}

// No sum is left to the driver to contract or not, since it does so in one
// specialisation of a kernel and not in another: then an op in parts has other bits.
func TestSumsAreExplicit(t *testing.T) {
	t.Parallel()
	seen, lines := map[contraction]bool{}, lexer{}
	used := make([]bool, len(exact))
	for name, list := range shaders.Variants() {
		for _, v := range list {
			text, err := shaders.Expand(name, v)
			require.NoError(t, err)
			for _, c := range contractions(lines, text) {
				if seen[c] {
					continue
				}
				seen[c] = true
				known := false
				for i, e := range exact {
					if e.shader == name && e.line.MatchString(c.line) {
						used[i], known = true, true
					}
				}
				if !known {
					t.Errorf("%s %v: %s: %s: use fma, or settled of fine.wgsl", name, v, c.what, c.line)
				}
			}
		}
	}
	for i, e := range exact {
		require.True(t, used[i], "%s: no such sum any more: %s", e.shader, e.line)
	}
}

func TestContractionsAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, what string }{
		{"return a * b + c;", "a product in a sum"},
		{"return c - a * b;", "a product in a sum"},
		{"let p = a * b; return c + p;", "a product in a sum"},
		{"var s = c; s += a * b; return s;", "a product in a sum"},
		{"var s = c; s *= a; return s - b;", "a product in a sum"},
		{"var s = c; for (var i = 0u; i < words.n; i++) { s = s + b; s = s * a; } return s;", "a product in a sum"},
		{"return a / b + c;", "a product in a sum"},
		{"return sqrt(a) + c;", "a product in a sum"},
		{"return fma(a, b, 0.0) + c;", "a product in a sum"},
		{"var s = 0.0; s = fma(a, b, s); return s + c;", "a product in a sum"},
		{"var s = vec4<f32>(0.0); { s = fma(vec4<f32>(a), vec4<f32>(b), s); } return s.x + s.y;", "a product in a sum"},
		{"var s = 0.0; s = fma(a, b, s); s = s + c; return s;", "a product in a sum"},
		{"var s = 0.0; let t = fma(a, b, s); return t + c;", "a product in a sum"},
		{"return select(a * b, a, a > b) + c;", "a product in a sum"},
		{"return abs(-(a * b)) + c;", "a product in a sum"},
		{"return f32(words.n) * a + c;", "a product in a sum"},
		{"return memory[words.n + 1u * words.n] * a + c;", "a product in a sum"},
		{"let pair = Pair(a * b, c); return pair.x + pair.y;", "a product in a sum"},
		{"return times(a, b) + c;", "a product in a sum"},
		{"return plus(a * b, c);", "a product in a sum"},
		{"return dot(vec2<f32>(a, b), vec2<f32>(c, c));", "dot"},
		{"return mix(a, b, c);", "mix"},
		{"return a % b;", "a remainder"},

		{"return fma(a, b, c);", ""},
		{"return fma(a, b, c * c);", ""},
		{"return a * b * c;", ""},
		{"return (a + b) * c;", ""},
		{"return a * 0.5 + c;", ""},
		{"return -2.0 * a + c;", ""},
		{"return a * bitcast<f32>((words.n + 127u) << 23u) + c;", ""},
		{"return 1.0 / (1.0 + a) + c;", ""},
		{"return fma(a, b, bitcast<f32>(words.n)) + c;", ""},
		{"return bitcast<f32>(bitcast<u32>(a * b) ^ words.n) + c;", ""},
		{"var s = 0.0; s = fma(a, b, s); s = fma(a, c, s); return s + c;", ""},
		{"var s = 0.0; for (var i = 0u; i < words.n; i++) { s = fma(a, b, s); } return s + c;", ""},
		{"var s = c; s = fma(a, b, s); return s + c;", ""},
		{"var s = 0.0; for (var i = 0u; i < words.n; i++) { let t = fma(a, b, s); s = t + c; } return s;", ""},
		{"memory[words.n * 4u + 2u] = a * b; return memory[words.n] + c;", ""},
		{"{ let p = a * b; } let p = a; return p + c;", ""},
		{"if (a * b > c) { return a; } return b + c;", ""},
		{"return max(a * b, 0.0) + c;", ""},
	} {
		text := `
struct Words {
	n: u32,
}
struct Pair {
	x: f32,
	y: f32,
}
@group(0) @binding(0) var<uniform> words: Words;
@group(0) @binding(1) var<storage, read_write> memory: array<f32>;
fn plus(a: f32, b: f32) -> f32 { return a + b; }
fn times(a: f32, b: f32) -> f32 { return a * b; }
fn f(a: f32, b: f32, c: f32) -> f32 {
	` + c.body + `
}
`
		found := contractions(lexer{}, text)
		if c.what == "" {
			require.Empty(t, found, c.body)
		} else {
			require.NotEmpty(t, found, c.body)
			require.Equal(t, c.what, found[0].what, c.body)
		}
	}
}
