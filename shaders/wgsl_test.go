package shaders_test

import (
	"fmt"
	"regexp"
	"strings"
)

// A function of the kernel, with what is known of its parameters and result.
type function struct {
	name, result string
	tokens       []token
	params       []*variable
	product      bool
	locals       []*variable // in the order of their declarations
	stale        bool        // to be read again
	found        []contraction
}

type variable struct {
	name, typ string
	product   bool
	depth     int  // of loops around the declaration
	zero      bool // it is 0, up to here
	alone     bool // it is one fma on top of a zero, up to here
}

type token struct {
	text string
	line int
}

var tokens = regexp.MustCompile(`bitcast<[\w<]+>+|vec[234]<\w+>|0x[0-9a-f]+[ui]?|\d+\.\d*(e[+-]?\d+)?|\d+e[+-]?\d+|\d+[ui]?|\w+|[+\-*/^|&]=|[<>=!]=|<<|>>|&&|\|\||[^\s\w]`)

// A lexer takes lines apart, and remembers them: kernels repeat them a thousand times.
type lexer map[string][]string

func (l lexer) line(s string) []string {
	list, ok := l[s]
	if !ok {
		list = tokens.FindAllString(s, -1)
		l[s] = list
	}
	return list
}

type reader struct {
	lexer   lexer
	structs map[string]map[string]string
	funcs   map[string]*function
	globals map[string]string
	order   []string

	lines   []string
	f       *function
	at      int
	scopes  []map[string]*variable
	loops   []bool // of the open braces, whether a loop
	depth   int
	decided int // locals of f met so far
}

// declare finds structs, variables of the module and functions.
func (r *reader) declare(text string) {
	r.lines = strings.Split(text, "\n")
	for i, l := range r.lines {
		r.lines[i], _, _ = strings.Cut(l, "//")
	}
	text = strings.Join(r.lines, "\n")
	for _, m := range regexp.MustCompile(`struct (\w+) \{([^}]*)\}`).FindAllStringSubmatch(text, -1) {
		r.structs[m[1]] = map[string]string{}
		for _, f := range regexp.MustCompile(`(\w+): ([^\n]*?),?\s*(\n|$)`).FindAllStringSubmatch(m[2], -1) {
			r.structs[m[1]][f[1]] = f[2]
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^(?:@.*)?(?:var<[^>]*>|const) (\w+)(?:: ([^;=]*))?`).FindAllStringSubmatch(text, -1) {
		r.globals[m[1]] = m[2]
	}
	head := regexp.MustCompile(`(?m)^fn (\w+)\((.*)\)(?: -> ([\w<>]+))? \{`)
	for _, m := range head.FindAllStringSubmatchIndex(text, -1) {
		f := &function{name: text[m[2]:m[3]], stale: true}
		if m[6] >= 0 {
			f.result = text[m[6]:m[7]]
		}
		for _, p := range regexp.MustCompile(`(\w+): ([\w<>]+)`).FindAllStringSubmatch(text[m[4]:m[5]], -1) {
			f.params = append(f.params, &variable{name: p[1], typ: p[2]})
		}
		line, open := strings.Count(text[:m[1]], "\n"), 1
		for i, l := range strings.Split(text[m[1]:], "\n") {
			for _, t := range r.lexer.line(l) {
				switch t {
				case "{":
					open++
				case "}":
					open--
				}
				if open > 0 {
					f.tokens = append(f.tokens, token{t, line + i})
				}
			}
			if open == 0 {
				break
			}
		}
		r.funcs[f.name] = f
		r.order = append(r.order, f.name)
	}
	if n := strings.Count("\n"+text, "\nfn "); n != len(r.order) {
		panic(fmt.Sprintf("%d functions, and %d are understood: %v", n, len(r.order), r.order))
	}
}

func (r *reader) peek() string {
	if r.at < len(r.f.tokens) {
		return r.f.tokens[r.at].text
	}
	return ""
}

func (r *reader) next() string {
	t := r.peek()
	r.at++
	return t
}

func (r *reader) accept(t string) bool {
	if r.peek() == t {
		r.at++
		return true
	}
	return false
}

func (r *reader) want(t string) {
	if got := r.next(); got != t {
		panic(fmt.Sprintf("%s: want %q, found %q in: %s", r.f.name, t, got, r.line()))
	}
}

// line is the line of the last token.
func (r *reader) line() string {
	return strings.TrimSpace(r.lines[r.f.tokens[min(max(r.at-1, 0), len(r.f.tokens)-1)].line])
}
