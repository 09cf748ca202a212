package shaders_test

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/shaders"
)

// Constants of two shaders.
var (
	linear = shaders.Variants()["linear"][0]
	conv   = shaders.Variants()["conv1d"][0]
)

// with returns constants with some changed.
func with(v shaders.Values, changes shaders.Values) shaders.Values {
	v = maps.Clone(v)
	maps.Copy(v, changes)
	return v
}

// pieces are files that only others include.
var pieces = []string{"attention_keys", "attention_scores", "attention_values", "columns", "epilogue", "fine", "index", "linear_few", "matrix", "mel_frames", "rows", "tile"}

func TestEveryFileExpands(t *testing.T) {
	t.Parallel()
	all := shaders.Variants()
	for _, name := range shaders.Names() {
		require.True(t, len(all[name]) > 0 || contains(pieces, name), "%s: no variant", name)
	}
	for name, list := range all {
		for _, v := range list {
			text, err := shaders.Expand(name, v)
			require.NoError(t, err, "%s %v", name, v)
			again, err := shaders.Expand(name, maps.Clone(v))
			require.NoError(t, err)
			require.Equal(t, text, again)
			require.NotContains(t, text, "{{")
			require.NotContains(t, text, "<no value>")
			require.Equal(t, 1, strings.Count(text, "@compute"), "%s %v", name, v)
		}
	}
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

func TestConstantsMatter(t *testing.T) {
	t.Parallel()
	texts := map[string]shaders.Values{}
	for _, v := range []shaders.Values{linear, with(linear, shaders.Values{"Tile": 64}), with(linear, shaders.Values{"Type": "BF16"}), with(linear, shaders.Values{"Quads": true})} {
		text, err := shaders.Expand("linear", v)
		require.NoError(t, err)
		require.NotContains(t, texts, text)
		texts[text] = v
	}
}

func TestWrongConstants(t *testing.T) {
	t.Parallel()
	missing := maps.Clone(linear)
	delete(missing, "Tile")
	for _, c := range []struct {
		label, name string
		v           shaders.Values
		says        string
	}{
		{"missing", "linear", missing, "missing [Tile], unknown []"},
		{"in a piece", "conv1d", with(conv, shaders.Values{"FewRows": 1}), "missing [], unknown [FewRows]"},
		{"unknown", "linear", with(linear, shaders.Values{"Tyle": 1}), "missing [], unknown [Tyle]"},
		{"none", "mark", nil, "missing [Written], unknown []"},
		{"type", "linear", with(linear, shaders.Values{"Tile": 32.0}), "Tile: want an int, a bool or a string, given float64"},
	} {
		_, err := shaders.Expand(c.name, c.v)
		require.ErrorIs(t, err, shaders.ErrConstant, c.label)
		require.ErrorContains(t, err, "shaders: "+c.name+": ", c.label)
		require.ErrorContains(t, err, c.says, c.label)
	}
	_, err := shaders.Expand("linear", with(linear, shaders.Values{"Columns": 6}))
	require.ErrorContains(t, err, "32 is no multiple of 6")
	_, err = shaders.Expand("lineal", linear)
	require.ErrorContains(t, err, `no shader "lineal": want one of [advance attention`)
}

// Constructs that one of the compilers of WGSL refuses, and naga takes or the other way
// round; see the package documentation.
var forbidden = []struct {
	what string
	expr *regexp.Regexp
}{
	{"override, enable, requires, diagnostic or const_assert", regexp.MustCompile(`(?m)^\s*(override|enable|requires|diagnostic|const_assert)\b`)},
	{"untyped integer in a store or an initialisation", regexp.MustCompile(`[^=!<>]=\s*-?\d+\s*;`)},
	{"untyped integer as an argument", regexp.MustCompile(`\b(min|max|clamp|select|fma|vec[234]<u32>)\([^()]*(\(|, )-?\d+[,)]`)},
	{"computed array size", regexp.MustCompile(`array<[^;]*,\s*[^;>]*[+*/-][^;>]*>`)},
	{"array size with a suffix", regexp.MustCompile(`(?m)array<[^;]*,\s*\d+u>`)},
	{"pointer", regexp.MustCompile(`\bptr<|&\w+[^\w\[&]*\)`)},
	{"reserved word as a name", regexp.MustCompile(`\b(let|var|fn|struct)\s+(self|signed|unsigned|half|common|filter|final|from|get|set|mod|module|move|new|of|pass|ref|shared|sizeof|static|target|this|type|union|use|using|where|with|active|precise|layout|package|public|private|resource|sample|smooth|template)\b`)},
	{"|| and && without parentheses", regexp.MustCompile(`\|\|[^()]*&&|&&[^()]*\|\|`)},
	{"shift beside &, | or ^ without parentheses", regexp.MustCompile(`(<<|>>) [\w.]+(<\w+>)?(\([^()]*\))? [&|^] | [&|^] [\w.]+(<\w+>)?(\([^()]*\))? (<<|>>) `)},
	{"number beyond the largest f32", regexp.MustCompile(`3\.402823(4[7-9]|[5-9])`)},
	{"newer built-in", regexp.MustCompile(`\b(dot4I8Packed|dot4U8Packed|unpack4xI8|unpack4xU8|subgroup\w+|f16)\b`)},
}

func TestDialect(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for name, list := range shaders.Variants() {
		for _, v := range list {
			text, err := shaders.Expand(name, v)
			require.NoError(t, err)
			for _, line := range strings.Split(text, "\n") {
				code, _, _ := strings.Cut(line, "//")
				if seen[code] {
					continue
				}
				seen[code] = true
				for _, f := range forbidden {
					require.NotRegexp(t, f.expr, code, "%s %v: %s", name, v, f.what)
				}
			}
			requireUniformBarriers(t, name, text)
		}
	}
}

// The rules find what they are for.
func TestDialectRules(t *testing.T) {
	t.Parallel()
	for i, bad := range []string{
		"enable f16;", "a[i] = 1;", "let x = max(y, 0);", "var<workgroup> a: array<f32, 4*4>;", "var<workgroup> a: array<f32, 16u>;",
		"fn f(p: ptr<workgroup, f32>) {}", "let self = 1u;", "if (a || b && c) {",
		"let s = x >> vec4<u32>(16u) & m;", "var top = -3.40282347e38;", "let x = subgroupAdd(y);",
	} {
		require.Regexp(t, forbidden[i].expr, bad)
	}
}

// requireUniformBarriers looks for barriers below an if, or a loop whose bounds may
// differ between invocations: those over literals, words or both are the same for all.
func requireUniformBarriers(t *testing.T, name, text string) {
	uniform := regexp.MustCompile(`^(fn |for \(var \w+ = (0u|\d+u|words\.\w+); \w+ [<>] (\d+u|words\.\w+); )`)
	var open []string
	for _, line := range strings.Split(text, "\n") {
		code, _, _ := strings.Cut(line, "//")
		code = strings.TrimSpace(code)
		if strings.Contains(code, "Barrier()") {
			for _, o := range open {
				require.Regexp(t, uniform, o, "%s: a barrier below it", name)
			}
		}
		if strings.HasPrefix(code, "}") {
			open = open[:len(open)-1]
		}
		if strings.HasSuffix(code, "{") {
			open = append(open, code)
		}
	}
	require.Empty(t, open, name)
}
