package ge2e

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/model/safetensors"
	"github.com/tandem-gpu/tandem/model/wav"
	"github.com/tandem-gpu/tandem/pass"
)

// A reference is what goldens/ge2e.json says.
type reference struct {
	Clips []struct {
		Clip    string
		Samples int
		Gain    float64
		Starts  []int    `json:"window_start_frames"`
		Speaker []string `json:"window_speaker"`
		Pure    []bool   `json:"window_pure"`
		Windows *struct {
			Count int
			Same  float64 `json:"same_speaker_mean_cosine"`
			Other float64 `json:"different_speaker_mean_cosine"`
			Right int     `json:"nearest_centroid_right"`
		} `json:"pure_windows"`
	}
	Cosine struct {
		Clips  []string
		Matrix [][]float64
	}
}

// TestTrained compares the published network with its reference in float64. The
// environment variable TANDEM_MODELS names a folder with ge2e.safetensors,
// goldens/ge2e.json and goldens/ge2e.safetensors, and, maybe, the clips in audio. With
// the race detector, which makes it twenty times slower, and without TANDEM_FULL only
// two clips are run.
func TestTrained(t *testing.T) {
	models := os.Getenv("TANDEM_MODELS")
	if models == "" {
		t.Skip("NOT TESTED ON A TRAINED MODEL: TANDEM_MODELS names no folder")
	}
	text, err := os.ReadFile(filepath.Join(models, "goldens", "ge2e.json"))
	require.NoError(t, err)
	var ref reference
	require.NoError(t, json.Unmarshal(text, &ref))
	require.NotEmpty(t, ref.Clips)
	open := func(path ...string) *safetensors.File {
		f, err := safetensors.Open(filepath.Join(append([]string{models}, path...)...))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		return f
	}
	file, want := open("ge2e.safetensors"), open("goldens", "ge2e.safetensors")
	undertest.Each(t, func(t *testing.T, dev pass.Device) {
		m, err := Load(t.Context(), dev, file, Resemblyzer())
		require.NoError(t, err)
		defer m.Close()
		traced := map[string][]float32{}
		s, err := m.NewSession(t.Context(), SessionConfig{Trace: func(name string, v []float32) { traced[name] = append(traced[name], v...) }})
		require.NoError(t, err)
		defer s.Close()
		voices := map[string][]float32{}
		for _, c := range ref.Clips {
			name := strings.TrimSuffix(c.Clip, ".wav")
			if raced && os.Getenv("TANDEM_FULL") == "" && name != "jfk" && !strings.HasSuffix(name, "0880") {
				t.Logf("%s: not run with the race detector", name)
				continue
			}
			clear(traced)
			samples := clip(t, models, c.Clip)
			require.Len(t, samples, c.Samples)
			require.InDelta(t, c.Gain, gain(samples), 1e-9)
			u, err := s.Embed(t.Context(), samples)
			require.NoError(t, err)
			voices[name] = u.Embedding
			var starts []int
			var partials []float32
			for _, w := range u.Windows {
				starts = append(starts, w.Start/hop)
				partials = append(partials, w.Embedding...)
			}
			require.Equal(t, c.Starts, starts, name)
			t.Logf("%s: %d windows: largest difference %.2g of windows, %.2g of the clip", name, len(starts),
				near(t, want, name+".partials", partials, 1e-5), near(t, want, name+".embedding", u.Embedding, 1e-5))
			for layer, values := range traced {
				if _, err := want.Raw(name + "." + layer); err == nil {
					t.Logf("%s: %s: largest difference %.2g", name, layer, near(t, want, name+"."+layer, values, 1e-5))
				}
			}
			if _, err := want.Raw(name + ".mel_window0"); err == nil {
				// Relative to the clip's peak.
				peak := float64(0)
				for _, v := range traced["mel"] {
					peak = max(peak, float64(v))
				}
				d := near(t, want, name+".mel_window0", traced["mel"][:windowFrames*mels], 1e-5*peak)
				t.Logf("%s: mel: largest difference %.2g of a peak of %.1f", name, d, peak)
			}
			if c.Windows != nil {
				separates(t, u.Windows, c.Speaker, c.Pure, c.Windows.Count, c.Windows.Right, c.Windows.Same, c.Windows.Other)
			}
		}
		for i, a := range ref.Cosine.Clips {
			for j, b := range ref.Cosine.Clips {
				if voices[a] != nil && voices[b] != nil {
					require.InDelta(t, ref.Cosine.Matrix[i][j], Cosine(voices[a], voices[b]), 1e-5, "%s, %s", a, b)
				}
			}
		}
	})
}

// clip returns the samples of a clip.
func clip(t *testing.T, models, name string) []float32 {
	path := filepath.Join(models, "audio", name)
	if _, err := os.Stat(path); err != nil {
		path = filepath.Join("..", "testdata", "audio", name)
	}
	samples, format, err := wav.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, SampleRate, format.Rate)
	return samples
}

// near requires values to be those stored, and returns the largest difference.
func near(t *testing.T, f *safetensors.File, name string, got []float32, tolerance float64) float64 {
	t.Helper()
	stored, err := f.Tensor(name)
	require.NoError(t, err)
	want, err := stored.Float32s()
	require.NoError(t, err)
	require.Len(t, got, len(want), name)
	most := 0.0
	for i, w := range want {
		d := math.Abs(float64(got[i]) - float64(w))
		require.LessOrEqual(t, d, tolerance, "%s: element %d", name, i)
		most = max(most, d)
	}
	return most
}

// separates tells the speakers of a conversation apart by the windows that hold one of
// them.
func separates(t *testing.T, all []Window, speakers []string, pure []bool, count, right int, same, other float64) {
	t.Helper()
	require.Len(t, all, len(speakers))
	var of []string
	var e [][]float32
	by := map[string][][]float32{}
	for i, w := range all {
		if pure[i] {
			of, e = append(of, speakers[i]), append(e, w.Embedding)
			by[speakers[i]] = append(by[speakers[i]], w.Embedding)
		}
	}
	require.Len(t, e, count)
	var sum [2]float64
	var n [2]float64
	nearest := 0
	for i := range e {
		for j := range i {
			k := 0
			if of[i] != of[j] {
				k = 1
			}
			sum[k] += Cosine(e[i], e[j])
			n[k]++
		}
		best, cosine := "", math.Inf(-1)
		for name, windows := range by {
			if c := Cosine(e[i], mean(windows, len(e[i]))); c > cosine {
				best, cosine = name, c
			}
		}
		if best == of[i] {
			nearest++
		}
	}
	t.Logf("one speaker: mean cosine %.4f; two: %.4f; nearest centroid right: %d of %d", sum[0]/n[0], sum[1]/n[1], nearest, count)
	require.InDelta(t, same, sum[0]/n[0], 1e-4)
	require.InDelta(t, other, sum[1]/n[1], 1e-4)
	require.Equal(t, right, nearest)
}
