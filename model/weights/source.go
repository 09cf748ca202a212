package weights

import (
	"slices"
	"strings"

	"github.com/tandem-gpu/tandem/pass"
)

// A Source is a set of named tensors, such as a file.
type Source interface {
	// Tensor returns the named tensor. The error for a name that does not exist wraps
	// pass.ErrInvalid and gives the nearest name that does.
	Tensor(name string) (pass.Tensor, error)
	// Names returns the names of all tensors.
	Names() []string
}

// Has reports whether src has a tensor of the given name, of whatever type: for tensors
// that are optional, or another's under a second name.
func Has(src Source, name string) bool {
	if v, ok := src.(interface{ Has(name string) bool }); ok {
		return v.Has(name)
	}
	return slices.Contains(src.Names(), name)
}

// Renamed shows src under other names: what is asked for by a name is the tensor that
// src has by name(name). The method Replace of a [strings.Replacer] is such a function.
// Names gives the names in src, and so do errors.
func Renamed(src Source, name func(string) string) Source { return &renamed{src, name} }

// RenamedIf is Renamed with the function of the first case that src has names of, and src
// itself if there is none. So one loader reads several layouts of a file.
func RenamedIf(src Source, cases ...Layout) Source {
	names := src.Names()
	for _, c := range cases {
		for _, name := range names {
			if strings.HasPrefix(name, c.Prefix) {
				return Renamed(src, c.Name)
			}
		}
	}
	return src
}

// A Layout is a way to name tensors: some names begin with Prefix, and Name turns what a
// loader asks for into them.
type Layout struct {
	Prefix string
	Name   func(string) string
}

type renamed struct {
	Source
	name func(string) string
}

func (r *renamed) Tensor(name string) (pass.Tensor, error) { return r.Source.Tensor(r.name(name)) }

func (r *renamed) Has(name string) bool { return Has(r.Source, r.name(name)) }

// Under shows the tensors of src whose names begin with prefix, by what follows it.
func Under(src Source, prefix string) Source { return &under{src, prefix} }

type under struct {
	src    Source
	prefix string
}

func (u *under) Tensor(name string) (pass.Tensor, error) { return u.src.Tensor(u.prefix + name) }

func (u *under) Has(name string) bool { return Has(u.src, u.prefix+name) }

func (u *under) Names() []string {
	var names []string
	for _, name := range u.src.Names() {
		if rest, ok := strings.CutPrefix(name, u.prefix); ok {
			names = append(names, rest)
		}
	}
	return names
}
