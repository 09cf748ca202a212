//go:build (linux && (amd64 || arm64) && !android) || (windows && amd64)

package driver

import "unsafe"

// CreateGraph implements Driver.
func (l *library) CreateGraph() (Graph, error) {
	var g Graph
	err := l.call(cuGraphCreate, uintptr(unsafe.Pointer(&g)), 0)
	return g, err
}

// DestroyGraph implements Driver.
func (l *library) DestroyGraph(g Graph) error { return l.plain(cuGraphDestroy, uintptr(g)) }

// AddKernel implements Driver. A library older than CUDA 12.3 takes programmatic edges as
// whole ones: the kernel's own wait is then over at once.
func (l *library) AddKernel(g Graph, k Launch, edges []Edge) (Node, error) {
	var (
		node               Node
		whole, early, self []Node
		data               []edgeData
	)
	for _, e := range edges {
		if !e.Programmatic || l.entries[cuGraphAddDependencies] == 0 {
			whole = append(whole, e.From)
			continue
		}
		early = append(early, e.From)
		data = append(data, edgeData{fromPort: portProgrammatic, kind: edgeProgrammatic})
	}
	params := kernelNodeParams{function: k.Function, grid: k.Grid, block: k.Block, shared: k.Shared, params: unsafe.Pointer(argsOf(k))}
	err := l.call(cuGraphAddKernelNode, uintptr(unsafe.Pointer(&node)), uintptr(g),
		uintptr(unsafe.Pointer(unsafe.SliceData(whole))), uintptr(len(whole)), uintptr(unsafe.Pointer(&params)))
	if err != nil {
		return 0, err
	}
	if k.Cooperative {
		yes := attributeValue{word: 1}
		if err := l.call(cuGraphKernelNodeSetAttribute, uintptr(node), attributeCoop, uintptr(unsafe.Pointer(&yes))); err != nil {
			return 0, err
		}
	}
	if len(early) == 0 {
		return node, nil
	}
	for range early {
		self = append(self, node)
	}
	err = l.call(cuGraphAddDependencies, uintptr(g), uintptr(unsafe.Pointer(&early[0])), uintptr(unsafe.Pointer(&self[0])),
		uintptr(unsafe.Pointer(&data[0])), uintptr(len(early)))
	if err != nil {
		return 0, err
	}
	return node, nil
}

// Instantiate implements Driver.
func (l *library) Instantiate(g Graph) (Exec, error) {
	var e Exec
	err := l.call(cuGraphInstantiateWithFlags, uintptr(unsafe.Pointer(&e)), uintptr(g), 0)
	return e, err
}

// DestroyExec implements Driver.
func (l *library) DestroyExec(e Exec) error { return l.plain(cuGraphExecDestroy, uintptr(e)) }

// LaunchGraph implements Driver.
func (l *library) LaunchGraph(e Exec, s Stream) error {
	return l.plain(cuGraphLaunch, uintptr(e), uintptr(s))
}
