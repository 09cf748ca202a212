package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// machineWith has the given backends only; the others fail.
func machineWith(failure error, names ...string) machine {
	return machine{
		open: func(_ context.Context, wanted ...string) (pass.Device, error) {
			for _, name := range names {
				if name == wanted[0] {
					return cpu.Open(cpu.Config{Threads: 1})
				}
			}
			return nil, fmt.Errorf("tandem: no device: %s: %w", wanted[0], failure)
		},
		devices: func(context.Context) []tandem.Candidate {
			return []tandem.Candidate{
				{Backend: "cuda", Reason: "no driver"},
				{Backend: "gpu", Name: "Twin", Reason: "denied"},
				{Backend: "gpu", Name: "Twin", Kind: "discrete", API: "vulkan", Usable: true},
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
		"index of an unusable one":  {machineWith(absent), "0", "", "device 0: tandem: open gpu Twin: denied: no device"},
		"index beyond":              {machineWith(absent), "3", "", "device 3: want auto, cuda, gpu, software, cpu, or one of --list-devices: 0 (Twin), 1 (Twin), 2 (Chip)"},
		"ambiguous name":            {machineWith(absent), "twin", "", "device twin: 2 devices have this name: want an index of --list-devices"},
		"unknown name":              {machineWith(absent), "Triplet", "", "device Triplet: want auto"},
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
		"-  cuda  none  not usable: no driver\n"+
		"0  gpu   Twin  not usable: denied\n"+
		"1  gpu   Twin  discrete, vulkan\n"+
		"2  cpu   Chip  cpu, go\n", stdout.String())
}

// On the machine at hand: the CPU is always there, under its index too, and auto says
// what it took unless it is told to be quiet.
func TestThisMachine(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	list := thisMachine.listed(ctx)
	for _, want := range []string{"auto", fmt.Sprint(len(list) - 1), list[len(list)-1].Name} {
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
