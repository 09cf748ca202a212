//go:build (linux && (amd64 || arm64) && !android) || (windows && amd64)

package driver

import (
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// CreateGraph implements Driver.
func (l *library) CreateGraph() (Graph, error) {
	var g Graph
	err := l.call(cuGraphCreate, uintptr(unsafe.Pointer(&g)), 0)
	return g, err
}

// DestroyGraph implements Driver.
func (l *library) DestroyGraph(g Graph) error { return l.plain(cuGraphDestroy, uintptr(g)) }

// A kernelNode is the memory of a call that adds a node. It stays in place.
type kernelNode struct {
	words  [5]uintptr
	params kernelNodeParams
	args   [1]unsafe.Pointer
	node   Node
}

var kernelNodes = sync.Pool{New: func() any { return new(kernelNode) }}

// AddKernel implements Driver.
func (l *library) AddKernel(g Graph, k Launch) (Node, error) {
	n := kernelNodes.Get().(*kernelNode)
	n.args[0] = unsafe.Pointer(unsafe.SliceData(k.Args))
	n.params = kernelNodeParams{function: k.Function, grid: k.Grid, block: k.Block, shared: k.Shared, params: unsafe.Pointer(&n.args)}
	n.words = [...]uintptr{uintptr(unsafe.Pointer(&n.node)), uintptr(g), 0, 0, uintptr(unsafe.Pointer(&n.params))}
	r, _, _ := purego.SyscallN(l.entries[cuGraphAddKernelNode], n.words[:]...)
	node := n.node
	n.args[0] = nil
	kernelNodes.Put(n)
	if code := int32(r); code != 0 {
		return 0, l.failure(cuGraphAddKernelNode, int(code))
	}
	if k.Cooperative {
		yes := attributeValue{word: 1}
		if err := l.call(cuGraphKernelNodeSetAttribute, uintptr(node), attributeCoop, uintptr(unsafe.Pointer(&yes))); err != nil {
			return 0, err
		}
	}
	return node, nil
}

// AddEdges implements Driver. All go in one call, since each costs more than an edge. A
// library older than CUDA 12.3 takes programmatic edges as whole ones: the kernel's own
// wait is then over at once.
func (l *library) AddEdges(g Graph, edges []Edge) error {
	if len(edges) == 0 {
		return nil
	}
	from, to, data := make([]Node, len(edges)), make([]Node, len(edges)), make([]edgeData, len(edges))
	for i, e := range edges {
		from[i], to[i] = e.From, e.To
		if e.Programmatic {
			data[i] = edgeData{fromPort: portProgrammatic, kind: edgeProgrammatic}
		}
	}
	if l.entries[cuGraphAddDependencies] == 0 {
		if err := l.optional(cuGraphAddWholeDependencies); err != nil {
			return err
		}
		return l.call(cuGraphAddWholeDependencies, uintptr(g), uintptr(unsafe.Pointer(&from[0])), uintptr(unsafe.Pointer(&to[0])), uintptr(len(edges)))
	}
	return l.call(cuGraphAddDependencies, uintptr(g), uintptr(unsafe.Pointer(&from[0])), uintptr(unsafe.Pointer(&to[0])),
		uintptr(unsafe.Pointer(&data[0])), uintptr(len(edges)))
}

// Instantiate implements Driver.
func (l *library) Instantiate(g Graph) (Exec, error) {
	var e Exec
	err := l.call(cuGraphInstantiateWithFlags, uintptr(unsafe.Pointer(&e)), uintptr(g), 0)
	return e, err
}

// Upload implements Driver.
func (l *library) Upload(e Exec, s Stream) error {
	return l.plain(cuGraphUpload, uintptr(e), uintptr(s))
}

// DestroyExec implements Driver.
func (l *library) DestroyExec(e Exec) error { return l.plain(cuGraphExecDestroy, uintptr(e)) }

// LaunchGraph implements Driver.
func (l *library) LaunchGraph(e Exec, s Stream) error {
	return l.plain(cuGraphLaunch, uintptr(e), uintptr(s))
}
