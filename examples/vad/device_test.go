package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem"
	"github.com/tandem-gpu/tandem/gpu"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// machineWith has the given backends only; the others fail.
func machineWith(failure error, names ...string) machine {
	return machine{
		open: func(_ context.Context, name string) (pass.Device, error) {
			if slices.Contains(names, name) {
				return cpu.Open(cpu.Config{Threads: 1})
			}
			return nil, fmt.Errorf("tandem: no device: %s: %w", name, failure)
		},
		devices: func(context.Context) []tandem.Candidate {
			return []tandem.Candidate{
				{Backend: "cuda", Reason: "no driver"},
				{Backend: "gpu", Name: "Twin", Reason: "denied", Adapter: &gpu.Adapter{Index: 0}},
				{Backend: "gpu", Name: "Twin", Kind: "discrete", API: "vulkan", Usable: true, Adapter: &gpu.Adapter{Index: 1}},
				{Backend: "cpu", Name: "Chip", Kind: "cpu", API: "go", Usable: true},
			}
		},
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	absent := fmt.Errorf("gone\n\tfor a reason: %w", pass.ErrNoDevice)
	wrong := fmt.Errorf("TANDEM_ADAPTER: %w", pass.ErrInvalid)
	for name, tc := range map[string]struct {
		m     machine
		want  string
		about string // in the lines that are said; if empty, the error
		err   string
	}{
		"auto takes the first":      {machineWith(absent, "cuda", "gpu", "cpu"), "auto", "using cpu (", ""},
		"auto says why":             {machineWith(absent, "cpu"), "auto", "not cuda: gone; for a reason: no device\nnot gpu: gone; for a reason: no device\nusing cpu (", ""},
		"auto takes no software":    {machineWith(absent, "software"), "auto", "", "not cuda: gone; for a reason: no device; not gpu"},
		"auto minds wrong settings": {machineWith(wrong, "cpu"), "auto", "", "TANDEM_ADAPTER: invalid"},
		"a backend":                 {machineWith(absent, "software"), "software", "", ""},
		"no other backend":          {machineWith(absent, "cpu"), "gpu", "", "device gpu: gone; for a reason: no device"},
	} {
		dev, about, err := tc.m.openDevice(context.Background(), tc.want)
		if tc.err != "" {
			require.ErrorContains(t, err, tc.err, name)
			require.Nil(t, dev, name)
			continue
		}
		require.NoError(t, err, name)
		require.NoError(t, dev.Close())
		require.Contains(t, strings.Join(about, "\n"), tc.about, name)
	}
}

func TestListDevices(t *testing.T) {
	t.Parallel()
	var stdout bytes.Buffer
	p := program{machine: machineWith(nil), stdout: &stdout}
	require.NoError(t, p.listDevices(context.Background()))
	require.Equal(t, ""+
		"-      cuda  none  not usable: no driver\n"+
		"gpu:0  gpu   Twin  not usable: denied\n"+
		"gpu:1  gpu   Twin  discrete, vulkan\n"+
		"cpu    cpu   Chip  cpu, go\n", stdout.String())
}

// On the machine at hand: the CPU is always there, and auto says what it took unless it is
// told to be quiet.
func TestThisMachine(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, want := range []string{"auto", "cpu", "cpu:1"} {
		dev, about, err := thisMachine.openDevice(ctx, want)
		require.NoError(t, err, want)
		require.NoError(t, dev.Close())
		require.Equal(t, want == "auto", about != nil)
	}
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitFailed, run(ctx, []string{"nosuch.wav"}, nil, &stdout, &stderr))
	require.Regexp(t, `^(vad: not [^\n]+\n)*vad: using [^\n]+\nvad: nosuch.wav: [^\n]+\n$`, stderr.String())
	stderr.Reset()
	require.Equal(t, exitFailed, run(ctx, []string{"--quiet", "nosuch.wav"}, nil, &stdout, &stderr))
	require.Regexp(t, `^vad: nosuch.wav: [^\n]+\n$`, stderr.String())
}
