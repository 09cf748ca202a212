package tandem

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda"
	"github.com/tandem-gpu/tandem/gpu"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// known returns the real backends, except that "cuda" finds no driver and "gpu" fails with
// err.
func known(t *testing.T, err error) []backend {
	list := append([]backend(nil), backends...)
	require.Equal(t, "cuda", list[0].name)
	require.Equal(t, "gpu", list[1].name)
	list[0].open = func(context.Context) (pass.Device, error) {
		return nil, fmt.Errorf("cuda: open: no driver: %w", pass.ErrNoDevice)
	}
	list[1].open = func(context.Context) (pass.Device, error) { return nil, err }
	list[2].open = list[1].open
	return list
}

var errAbsent = fmt.Errorf("gpu: open: no adapter: %w", pass.ErrNoDevice)

func TestOpenTakesTheFirstThatOpens(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"cpu"}, {"cuda", "cpu"}, {"cuda", "gpu", "software", "cpu"}, {"cpu", "gpu"}} {
		dev, err := open(t.Context(), known(t, errAbsent), names)
		require.NoError(t, err)
		require.Equal(t, "cpu", dev.Info().Backend)
		require.NoError(t, dev.Close())
	}
}

// A device that is not in the list must not be used, however good it is.
func TestOpenStaysInTheList(t *testing.T) {
	t.Parallel()
	opened := false
	list := known(t, errAbsent)
	list[3].open = func(context.Context) (pass.Device, error) {
		opened = true
		return cpu.Open(cpu.Config{})
	}
	_, err := open(t.Context(), list, []string{"cuda", "gpu"})
	require.ErrorIs(t, err, pass.ErrNoDevice)
	require.False(t, opened)
	_, err = open(t.Context(), list, []string{"cpu", "tpu"})
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.False(t, opened, "an unknown name is found before anything is opened")
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	own := errors.New("own cause")
	absent := fmt.Errorf("gpu: open: %w: %w", own, pass.ErrUnsupported)
	for _, test := range []struct {
		names []string
		is    []error
		want  string
	}{
		{nil, []error{pass.ErrInvalid},
			`tandem: open: no device named; list those that may be used, in order, such as "gpu", "cpu"; the names are cuda, gpu, software, cpu: invalid`},
		{[]string{"cpu", "CUDA"}, []error{pass.ErrInvalid}, `tandem: open: no device is called "CUDA"; the names are cuda, gpu, software, cpu: invalid`},
		{[]string{"cuda"}, []error{pass.ErrNoDevice}, "tandem: no device: cuda: open: no driver: no device"},
		{[]string{"cuda", "gpu", "software"}, []error{pass.ErrNoDevice, pass.ErrUnsupported, own},
			"tandem: no device:\n\tcuda: open: no driver: no device\n\tgpu: open: own cause: unsupported\n\tsoftware: gpu: open: own cause: unsupported"},
	} {
		dev, err := open(t.Context(), known(t, absent), test.names)
		require.Nil(t, dev)
		require.EqualError(t, err, test.want)
		for _, is := range test.is {
			require.ErrorIs(t, err, is)
		}
	}
}

// Whoever mistypes a variable must hear of it, not get the next device.
func TestOpenStopsAtAWrongRequest(t *testing.T) {
	t.Parallel()
	for _, wrong := range []error{
		fmt.Errorf("gpu: TANDEM_API: want vulkan: %w", pass.ErrInvalid),
		fmt.Errorf("gpu: TANDEM_ADAPTER: no adapter \"x\": %w: %w", pass.ErrNoDevice, pass.ErrInvalid),
	} {
		_, err := open(t.Context(), known(t, wrong), []string{"gpu", "cpu"})
		require.ErrorIs(t, err, wrong)
		require.EqualError(t, err, "tandem: open: "+wrong.Error())
	}
}

func TestWrongEnvironmentIsHeard(t *testing.T) {
	t.Setenv("TANDEM_API", "opengl")
	_, err := Open(t.Context(), "gpu", "cpu")
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorContains(t, err, "TANDEM_API")
}

func TestOpenStopsWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	list := known(t, errAbsent)
	cause := errors.New("enough")
	list[1].open = func(ctx context.Context) (pass.Device, error) {
		cancel(cause)
		return nil, fmt.Errorf("gpu: open: %w", context.Cause(ctx))
	}
	_, err := open(ctx, list, []string{"gpu", "cpu"})
	require.EqualError(t, err, "tandem: open: gpu: open: enough")
	require.ErrorIs(t, err, cause)
	_, err = open(ctx, list, []string{"cpu"})
	require.ErrorIs(t, err, cause)
}

func TestDevicesEndsWithTheCPU(t *testing.T) {
	t.Parallel()
	list := Devices(t.Context())
	require.Equal(t, "cuda", list[0].Backend)
	if !list[0].Usable {
		_, err := list[0].Open(t.Context())
		require.ErrorIs(t, err, pass.ErrNoDevice)
	}
	for _, c := range list {
		require.Equal(t, c.Usable, c.Reason == "", c)
		require.Equal(t, c.Usable, c.open != nil, c)
	}
	last := list[len(list)-1]
	require.Equal(t, "cpu", last.Backend)
	require.True(t, last.Usable)
	dev, err := last.Open(t.Context())
	require.NoError(t, err)
	require.Equal(t, last.Name, dev.Info().Name)
	require.NoError(t, dev.Close())
}

func TestDevicesOnAnEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	list := Devices(ctx)
	require.Len(t, list, 3)
	for i, name := range []string{"cuda", "gpu"} {
		require.Equal(t, name, list[i].Backend)
		require.False(t, list[i].Usable)
		require.NotEmpty(t, list[i].Reason)
	}
}

func TestAdapterCandidates(t *testing.T) {
	t.Parallel()
	list := adapterCandidates([]gpu.Adapter{
		{Index: 0, Name: "NVIDIA H200", Kind: "discrete", APIs: []string{"vulkan", "d3d12"}, Driver: "570", Rank: 1, Reason: "first choice"},
		{Index: 1, Name: "Old", Kind: "integrated", APIs: []string{"vulkan"}, Reason: "limits are too low"},
		{Index: 2, Name: "llvmpipe", Kind: "software", APIs: []string{"vulkan"}, Rank: 2},
	}, nil)
	for i := range list {
		require.Equal(t, list[i].Usable, list[i].open != nil)
		require.Equal(t, i, list[i].Adapter.Index)
		list[i].open, list[i].Adapter = nil, nil
	}
	require.Equal(t, []Candidate{
		{Backend: "gpu", Name: "NVIDIA H200", Kind: "discrete", API: "vulkan d3d12", Driver: "570", Usable: true},
		{Backend: "gpu", Name: "Old", Kind: "integrated", API: "vulkan", Reason: "limits are too low"},
		{Backend: "software", Name: "llvmpipe", Kind: "software", API: "vulkan", Usable: true},
	}, list)
	require.Equal(t, []Candidate{{Backend: "gpu", Reason: "open: no adapter: no device"}}, adapterCandidates(nil, errAbsent))
}

func TestCUDACandidates(t *testing.T) {
	t.Parallel()
	list := cudaCandidates([]cuda.GPU{
		{Ordinal: 0, Name: "NVIDIA H200", Kind: "discrete", Driver: "CUDA 13.0", Usable: true},
		{Ordinal: 1, Name: "Quadro", Kind: "discrete", Driver: "CUDA 13.0", Reason: "compute capability 6.1"},
	}, nil)
	for i := range list {
		require.Equal(t, list[i].Usable, list[i].open != nil)
		require.Equal(t, i, list[i].GPU.Ordinal)
		list[i].open, list[i].GPU = nil, nil
	}
	require.Equal(t, []Candidate{
		{Backend: "cuda", Name: "NVIDIA H200", Kind: "discrete", API: "cuda", Driver: "CUDA 13.0", Usable: true},
		{Backend: "cuda", Name: "Quadro", Kind: "discrete", API: "cuda", Driver: "CUDA 13.0", Reason: "compute capability 6.1"},
	}, list)
	absent := fmt.Errorf("cuda: devices: %w: %w", errors.Join(errors.New("no driver"), errors.New("nor GPU")), pass.ErrNoDevice)
	require.Equal(t, []Candidate{{Backend: "cuda", Reason: "devices: no driver; nor GPU: no device"}}, cudaCandidates(nil, absent))
}

func TestCandidateRefusesAnotherDevice(t *testing.T) {
	t.Parallel()
	c := Candidate{Backend: "gpu", Name: "Gone", open: func(context.Context) (pass.Device, error) { return cpu.Open(cpu.Config{}) }}
	_, err := c.Open(t.Context())
	require.ErrorIs(t, err, pass.ErrNoDevice)
	require.ErrorContains(t, err, "the devices have changed")
}

func TestNoContext(t *testing.T) {
	t.Parallel()
	var none context.Context
	_, err := Open(none, "gpu", "cpu")
	require.ErrorIs(t, err, pass.ErrInvalid)
	list := Devices(none)
	require.Equal(t, "cpu", list[len(list)-1].Backend)
	_, err = list[len(list)-1].Open(none)
	require.ErrorIs(t, err, pass.ErrInvalid)
}

// The README says what the images of CUDA kernels add to a program.
func TestReadmeTellsTheSize(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir("cuda/kernels/images")
	require.NoError(t, err)
	size := int64(0)
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		size += info.Size()
	}
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Contains(t, string(text), fmt.Sprintf("They add %.0f MB to a program.", float64(size)/1e6))
}

// The README lists every variable that is read when a device is opened.
func TestReadmeListsTheEnvironment(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, v := range gpu.Environment() {
		require.Contains(t, string(text), "| `"+v.Name+"` |")
	}
	for _, v := range cuda.Environment() {
		require.Contains(t, string(text), "| `"+v.Name+"` |")
	}
}
