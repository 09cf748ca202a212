package source

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/tandem-gpu/tandem/cuda/kernels"
)

// Wrappers returns the source of the exported functions of a family, for nvcc. They wait
// for the kernels that they depend on, so that kernels need not unless they begin with what
// depends on none, and let those that depend on them get ready: these wait in turn, for the
// end, so that nothing is read too early.
func Wrappers(f kernels.Family, entries []kernels.Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#include \"%s.cu\"\n", f.Name)
	for _, e := range entries {
		bounds := fmt.Sprint(e.Threads)
		if e.Resident > 0 {
			bounds += fmt.Sprintf(", %d", e.Resident)
		}
		cluster := ""
		if e.Cluster > 1 {
			cluster = fmt.Sprintf("__cluster_dims__(%d, 1, 1) ", e.Cluster)
		}
		wait := "\twait_dependency();\n"
		if e.Waits {
			wait = ""
		}
		fmt.Fprintf(&b, `
extern "C" __global__ __launch_bounds__(%s) %svoid %s(const __grid_constant__ kernels::%s a) {
%s	release_dependents();
	%s(a);
}
`, bounds, cluster, e.Name, argsName(e), wait, e.Call)
	}
	return b.String()
}

// Emulated returns the source of the entries of a family, for the emulator.
func Emulated(f kernels.Family, entries []kernels.Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#include \"%s.cu\"\n", f.Name)
	for _, e := range entries {
		fmt.Fprintf(&b, `
static void run_%[1]s(const void* a) { %[2]s(*static_cast<const kernels::%[3]s*>(a)); }
extern "C" __attribute__((visibility("default"))) const emulate::Entry tandem_entry_%[1]s = {
    "%[1]s", run_%[1]s, sizeof(kernels::%[3]s), %[4]d, %[5]d};
`, e.Name, e.Call, argsName(e), e.Threads, e.Cluster)
	}
	return b.String()
}

func argsName(e kernels.Entry) string { return reflect.TypeOf(e.Args).Name() }
