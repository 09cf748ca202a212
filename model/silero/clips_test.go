package silero

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/model/wav"
)

// A clip is a recording with the probabilities that ONNX Runtime gives for it.
type clip struct {
	Samples       int
	Probabilities []float32
}

// names are the recordings in testdata.
var names = []string{
	"jfk",
	"sense_and_sensibility_01_austen_64kb-0870",
	"sense_and_sensibility_01_austen_64kb-0880",
	"sense_and_sensibility_01_austen_64kb-0890",
	"sense_and_sensibility_01_austen_64kb-0920",
	"sense_and_sensibility_01_austen_64kb-0930",
}

func reference(t testing.TB, name string) clip {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".probs.json"))
	require.NoError(t, err)
	var c clip
	require.NoError(t, json.Unmarshal(data, &c))
	require.Len(t, c.Probabilities, (c.Samples+511)/512)
	return c
}

func samples(t testing.TB, name string) []float32 {
	t.Helper()
	s, format, err := wav.ReadFile(filepath.Join("..", "testdata", "audio", name+".wav"))
	require.NoError(t, err)
	require.Equal(t, 16000, format.Rate)
	return s
}
