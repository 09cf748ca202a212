package whisper

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/model/safetensors"
	"github.com/tandem-gpu/tandem/model/wav"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// The environment variable TANDEM_MODELS names a folder with whisper-tiny.en-q8_0.gguf,
// goldens/whisper and, maybe, audio. TANDEM_WHISPER names one with other files of the same
// model, all of which are tested: model.safetensors with config.json, and *.gguf. Without
// TANDEM_FULL only the first clips are run, and not by all files.

// A wanted is what CLIP.json says of a weight set.
type wanted struct {
	Encoder struct{ Mean, Std float64 }
	Decode  map[string]struct {
		Prompt   []int
		IDs      []int
		Text     string
		NoSpeech float64 `json:"no_speech_prob"`
		Sum      float64 `json:"sum_logprob"`
		Segments []struct {
			Start, End float64
			Text       string
		}
		Steps []struct {
			LogProb float64
			Top     [][2]float64
		}
	}
}

// A published is a file of a model.
type published struct {
	path, set string
}

func publishedFiles(t *testing.T) (files []published, clips string) {
	models := os.Getenv("TANDEM_MODELS")
	if models == "" {
		t.Skip("NOT TESTED ON A TRAINED MODEL: TANDEM_MODELS names no folder")
	}
	if raceEnabled {
		t.Skip("NOT TESTED ON A TRAINED MODEL: the race detector makes it twenty times slower; run it without")
	}
	files = append(files, published{filepath.Join(models, "whisper-tiny.en-q8_0.gguf"), "q8_0"})
	if dir := os.Getenv("TANDEM_WHISPER"); dir != "" {
		found, err := filepath.Glob(filepath.Join(dir, "*.gguf"))
		require.NoError(t, err)
		for _, path := range append(found, filepath.Join(dir, "model.safetensors")) {
			set := "f16"
			if strings.Contains(filepath.Base(path), "q8_0") {
				set = "q8_0"
			}
			files = append(files, published{path, set})
		}
	}
	return files, filepath.Join(models, "goldens", "whisper")
}

// open opens a file and returns its configuration.
func (f published) open(t *testing.T) (weights.Source, Config) {
	if filepath.Ext(f.path) == ".gguf" {
		g, err := gguf.Open(f.path)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, g.Close()) })
		cfg, err := FromGGUF(g.Metadata())
		require.NoError(t, err)
		return g, cfg
	}
	s, err := safetensors.Open(f.path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(f.path), name))
		require.NoError(t, err)
		return b
	}
	cfg, err := FromJSON(read("config.json"), read("generation_config.json"), read("tokenizer.json"))
	require.NoError(t, err)
	return s, cfg
}

func TestTrained(t *testing.T) {
	files, dir := publishedFiles(t)
	clips, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, clips, "no clips in %s", dir)
	onDevices(t, func(t *testing.T, dev pass.Device) {
		for i, f := range files {
			some := clips
			if os.Getenv("TANDEM_FULL") == "" {
				some = nil
				for _, path := range clips {
					if name := filepath.Base(path); name == "jfk.json" || i == 0 && strings.HasSuffix(name, "0880.json") {
						some = append(some, path)
					}
				}
				t.Logf("%d of %d clips, since TANDEM_FULL is not set", len(some), len(clips))
			}
			t.Run(filepath.Base(f.path), func(t *testing.T) {
				src, cfg := f.open(t)
				m, err := Load(t.Context(), dev, src, cfg)
				require.NoError(t, err)
				defer m.Close()
				for _, path := range some {
					t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) { testClip(t, m, f.set, path) })
				}
			})
		}
	})
}

// clipSamples returns the first window of a clip's samples.
func clipSamples(t *testing.T, name, sum string) []float32 {
	path := filepath.Join(os.Getenv("TANDEM_MODELS"), "audio", name)
	if _, err := os.Stat(path); err != nil {
		path = filepath.Join("..", "testdata", "audio", name)
	}
	samples, format, err := wav.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 16000, format.Rate)
	h := sha256.New()
	for _, v := range samples {
		require.NoError(t, binary.Write(h, binary.LittleEndian, int16(math.Round(float64(v)*32768))))
	}
	require.Equal(t, sum, hex.EncodeToString(h.Sum(nil)), "the samples of %s", path)
	return samples[:min(len(samples), 480000)]
}

// A clip compares the results of one clip.
type clip struct {
	*testing.T
	file *safetensors.File
}

func (c clip) values(name string) []float32 {
	x, err := c.file.Tensor(name)
	require.NoError(c, err)
	v, err := x.Float32s()
	require.NoError(c, err)
	return v
}

func (c clip) has(name string) bool { return weights.Has(c.file, name) }

// near requires values within an absolute tolerance of the stored tensor.
func (c clip) near(name string, got []float32, tolerance float64) {
	want := c.values(name)
	require.Len(c, got, len(want), name)
	worst := 0.0
	for i, w := range want {
		worst = max(worst, math.Abs(float64(got[i])-float64(w)))
		require.False(c, math.IsNaN(float64(got[i])), name)
	}
	c.Logf("%s: largest difference %.2g of %.2g", name, worst, tolerance)
	require.LessOrEqual(c, worst, tolerance, name)
}

// rows picks rows of so many values.
func (c clip) rows(indices string, values []float32, width int) (out []float32) {
	at, err := c.file.Int64s(indices)
	require.NoError(c, err)
	for _, r := range at {
		out = append(out, values[int(r)*width:(int(r)+1)*width]...)
	}
	return out
}

func testClip(t *testing.T, m *Model, set, path string) {
	ctx := t.Context()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var said struct {
		Clip string
		PCM  string `json:"pcm_sha256"`
	}
	require.NoError(t, json.Unmarshal(text, &said))
	sets := map[string]json.RawMessage{}
	require.NoError(t, json.Unmarshal(text, &sets))
	var want wanted
	require.NoError(t, json.Unmarshal(sets[set], &want))
	file, err := safetensors.Open(strings.TrimSuffix(path, ".json") + ".safetensors")
	require.NoError(t, err)
	defer file.Close()
	c := clip{t, file}

	traced := map[string][]float32{}
	s, err := m.NewSession(ctx, SessionConfig{Trace: func(name string, v []float32) { traced[name] = v }})
	require.NoError(t, err)
	defer s.Close()
	start := time.Now()
	require.NoError(t, s.Encode(ctx, clipSamples(t, said.Clip, said.PCM)))
	t.Logf("encoder: %v", time.Since(start))

	mels, d := m.cfg.Mels, m.cfg.Width
	c.near("mel_rows", c.rows("mel_frames", traced["mel"], mels), 1e-4)
	if c.has("mel") {
		columns := len(c.values("mel")) / mels
		turned := make([]float32, columns*mels)
		for i := range turned {
			turned[i] = traced["mel"][i%columns*mels+i/columns]
		}
		c.near("mel", turned, 1e-4)
	}
	tolerances := map[string]float64{"after_conv": 2e-5, fmt.Sprint("after_layer_", m.cfg.Layers-1): 2e-4, "encoder": 2e-4}
	for name, values := range traced {
		if stored := set + "." + name; c.has(stored) {
			tolerance, ok := tolerances[name]
			if !ok {
				tolerance = 1e-4
			}
			c.near(stored, c.rows("encoder_frames", values, d), tolerance)
		}
	}
	require.LessOrEqual(t, relative(c.values(set+".encoder"), c.rows("encoder_frames", traced["encoder"], d)), 1e-5)
	mean, deviation := moments(traced["encoder"])
	require.InDelta(t, want.Encoder.Mean, mean, 1e-5)
	require.InDelta(t, want.Encoder.Std, deviation, 1e-5)

	for mode := Plain; mode <= Raw; mode++ {
		start := time.Now()
		w := want.Decode[mode.String()]
		decoded, err := s.Decode(ctx, Options{Mode: mode, MaxTokens: 224})
		require.NoError(t, err)
		t.Logf("%v: %d tokens, %v", mode, len(decoded[0].IDs), time.Since(start))
		got := decoded[0]
		require.Equal(t, w.Prompt, got.Prompt)
		require.Equal(t, w.IDs, got.IDs, mode)
		require.Equal(t, w.Text, strings.TrimSpace(got.Text))
		require.InDelta(t, w.NoSpeech, got.NoSpeech, 1e-5)
		require.InDelta(t, w.Sum, got.SumLogProb(), 2e-4*float64(len(w.IDs)))
		for i, step := range w.Steps {
			require.InDelta(t, step.LogProb, got.LogProbs[i], 2e-4, "%v: step %d", mode, i)
		}
		require.Len(t, got.Segments, len(w.Segments))
		for i, g := range w.Segments {
			require.Equal(t, g.Text, got.Segments[i].Text)
			require.InDelta(t, g.Start, got.Segments[i].Start.Seconds(), 1e-6)
			require.InDelta(t, g.End, got.Segments[i].End.Seconds(), 1e-6)
		}
		// The logits of every step, with the stored tokens as input.
		ids := append(append([]int{}, w.Prompt...), w.IDs[:len(w.IDs)-1]...)
		hidden, logits, err := s.Logits(ctx, [][]int{ids})
		require.NoError(t, err)
		worst := 0.0
		for i, step := range w.Steps {
			row := logits[0][(len(w.Prompt)-1+i)*m.cfg.Classes:]
			for _, top := range step.Top {
				worst = max(worst, math.Abs(float64(row[int(top[0])])-top[1]))
			}
		}
		t.Logf("%v: logits: largest difference %.2g", mode, worst)
		require.LessOrEqual(t, worst, 1e-3, "%v: logits", mode)
		if mode == Raw {
			last := len(w.Prompt) - 1
			c.near(set+".first_hidden", hidden[0][last*d:(last+1)*d], 5e-4)
			if c.has(set + ".first_logits") {
				c.near(set+".first_logits", logits[0][last*m.cfg.Classes:(last+1)*m.cfg.Classes], 1e-3)
			}
		}
	}
}

// relative returns the relative error of the root of the mean square.
func relative(want, got []float32) float64 {
	var off, size float64
	for i, w := range want {
		e := float64(got[i]) - float64(w)
		off, size = off+e*e, size+float64(w)*float64(w)
	}
	return math.Sqrt(off / size)
}

func moments(values []float32) (mean, deviation float64) {
	for _, v := range values {
		mean += float64(v)
	}
	mean /= float64(len(values))
	for _, v := range values {
		deviation += (float64(v) - mean) * (float64(v) - mean)
	}
	return mean, math.Sqrt(deviation / float64(len(values)))
}
