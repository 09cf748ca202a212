package shaders

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"
)

//go:embed *.wgsl
var files embed.FS

// ErrConstant: a shader was expanded with constants that are not those it takes.
var ErrConstant = errors.New("wrong constants")

// Values are the constants of a shader by name: each an int, a bool or a string.
type Values map[string]any

// Names returns the names of all files, without their ending, in order. Not all of them
// have kernels of their own.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".wgsl"))
	}
	return names
}

// Expand returns the text of a shader with its constants filled in: those that the
// shader and the pieces it includes name, all of them and no other. The same arguments
// always give the same text.
func Expand(name string, v Values) (string, error) {
	set, err := library()
	if err != nil {
		return "", fmt.Errorf("shaders: %w", err)
	}
	file := set.Lookup(name + ".wgsl")
	if file == nil {
		return "", fmt.Errorf("shaders: no shader %q: want one of %v", name, Names())
	}
	if err := check(set, file, v); err != nil {
		return "", fmt.Errorf("shaders: %s: %w", name, err)
	}
	var text strings.Builder
	if err := file.Execute(&text, map[string]any(v)); err != nil {
		return "", fmt.Errorf("shaders: %s: %w", name, err)
	}
	return tidy(text.String()), nil
}

// tidy drops the lines that held nothing but template actions.
func tidy(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// library parses all files, once: any of them may include pieces of another.
var library = sync.OnceValues(func() (*template.Template, error) {
	set := template.New("").Option("missingkey=error").Funcs(template.FuncMap{
		"seq":      seq,
		"add":      func(a, b int) int { return a + b },
		"sub":      func(a, b int) int { return a - b },
		"mul":      func(a, b int) int { return a * b },
		"div":      divide,
		"mod":      remainder,
		"quotient": func(a, b int) int { return a / b },
		"lane": func(i int) (string, error) {
			if i < 0 || i > 3 {
				return "", fmt.Errorf("lane %d of a vector of 4", i)
			}
			return "xyzw"[i : i+1], nil
		},
	})
	return set.ParseFS(files, "*.wgsl")
})

// seq returns 0 … n−1.
func seq(n int) []int {
	all := make([]int, max(n, 0))
	for i := range all {
		all[i] = i
	}
	return all
}

// divide refuses what does not divide without remainder: a tile that does not fit.
func divide(a, b int) (int, error) {
	if b <= 0 || a%b != 0 {
		return 0, fmt.Errorf("%d is no multiple of %d", a, b)
	}
	return a / b, nil
}

func remainder(a, b int) (int, error) {
	if b <= 0 {
		return 0, fmt.Errorf("remainder by %d", b)
	}
	return a % b, nil
}

// check compares the given constants with those that the text names.
func check(set, file *template.Template, v Values) error {
	named := map[string]bool{}
	collect(set, file.Root, named, map[string]bool{})
	var missing, unknown []string
	for name := range named {
		if _, ok := v[name]; !ok {
			missing = append(missing, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if !named[name] {
			unknown = append(unknown, name)
		}
		switch v[name].(type) {
		case int, bool, string:
		default:
			return fmt.Errorf("%s: want an int, a bool or a string, given %T: %w", name, v[name], ErrConstant)
		}
	}
	slices.Sort(missing)
	if missing != nil || unknown != nil {
		return fmt.Errorf("missing %v, unknown %v: %w", missing, unknown, ErrConstant)
	}
	return nil
}

// collect adds the constants that a node names, as .Name or $.Name, and follows the
// pieces it includes.
func collect(set *template.Template, node parse.Node, named, seen map[string]bool) {
	each := func(nodes ...parse.Node) {
		for _, n := range nodes {
			collect(set, n, named, seen)
		}
	}
	branch := func(b parse.BranchNode) {
		each(b.Pipe, b.List)
		if b.ElseList != nil {
			each(b.ElseList)
		}
	}
	switch n := node.(type) {
	case *parse.ListNode:
		each(n.Nodes...)
	case *parse.ActionNode:
		each(n.Pipe)
	case *parse.IfNode:
		branch(n.BranchNode)
	case *parse.RangeNode:
		branch(n.BranchNode)
	case *parse.TemplateNode:
		if t := set.Lookup(n.Name); t != nil && !seen[n.Name] {
			seen[n.Name] = true
			each(t.Root)
		}
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			each(c.Args...)
		}
	case *parse.FieldNode:
		named[n.Ident[0]] = true
	case *parse.VariableNode:
		if n.Ident[0] == "$" && len(n.Ident) > 1 {
			named[n.Ident[1]] = true
		}
	}
}
