package tandem_test

import (
	"context"

	"github.com/tandem-gpu/tandem/model/asr"
	"github.com/tandem-gpu/tandem/model/ge2e"
	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/model/gigaam"
	"github.com/tandem-gpu/tandem/model/moonshine"
	"github.com/tandem-gpu/tandem/model/parakeet"
	"github.com/tandem-gpu/tandem/model/pyannote"
	"github.com/tandem-gpu/tandem/model/silero"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/model/wespeaker"
	"github.com/tandem-gpu/tandem/model/whisper"
	"github.com/tandem-gpu/tandem/pass"
)

// Networks are used alike: what follows compiles.
type (
	preset[C any]             = func(name string) (C, error)
	fromGGUF[C any]           = func(gguf.Metadata) (C, error)
	check[C any]              = func(C) error
	load[M, C any]            = func(context.Context, pass.Device, weights.Source, C) (*M, error)
	config[M, C any]          = func(*M) C
	newSession[M, S, C any]   = func(*M, context.Context, C) (*S, error)
	transcribe[T, Opt, R any] = func(T, context.Context, []float32, Opt) (R, error)
	closer[T any]             = func(*T) error
)

var (
	_ preset[whisper.Config]   = whisper.Preset
	_ preset[moonshine.Config] = moonshine.Preset
	_ preset[gigaam.Config]    = gigaam.Preset
	_ preset[parakeet.Config]  = parakeet.Preset

	_ fromGGUF[whisper.Config]   = whisper.FromGGUF
	_ fromGGUF[moonshine.Config] = moonshine.FromGGUF
	_ fromGGUF[gigaam.Config]    = gigaam.FromGGUF
	_ fromGGUF[parakeet.Config]  = parakeet.FromGGUF

	_ check[whisper.Config]   = whisper.Config.Check
	_ check[moonshine.Config] = moonshine.Config.Check
	_ check[gigaam.Config]    = gigaam.Config.Check
	_ check[parakeet.Config]  = parakeet.Config.Check
	_ check[pyannote.Config]  = pyannote.Config.Check
	_ check[wespeaker.Config] = wespeaker.Config.Check
	_ check[ge2e.Config]      = ge2e.Config.Check

	_ load[whisper.Model, whisper.Config]     = whisper.Load
	_ load[moonshine.Model, moonshine.Config] = moonshine.Load
	_ load[gigaam.Model, gigaam.Config]       = gigaam.Load
	_ load[parakeet.Model, parakeet.Config]   = parakeet.Load
	_ load[pyannote.Model, pyannote.Config]   = pyannote.Load
	_ load[wespeaker.Model, wespeaker.Config] = wespeaker.Load
	_ load[ge2e.Model, ge2e.Config]           = ge2e.Load
	// Silero has one size.
	_ func(context.Context, pass.Device, weights.Source) (*silero.Model, error) = silero.Load

	_ config[whisper.Model, whisper.Config]     = (*whisper.Model).Config
	_ config[moonshine.Model, moonshine.Config] = (*moonshine.Model).Config
	_ config[gigaam.Model, gigaam.Config]       = (*gigaam.Model).Config
	_ config[parakeet.Model, parakeet.Config]   = (*parakeet.Model).Config
	_ config[pyannote.Model, pyannote.Config]   = (*pyannote.Model).Config
	_ config[wespeaker.Model, wespeaker.Config] = (*wespeaker.Model).Config
	_ config[ge2e.Model, ge2e.Config]           = (*ge2e.Model).Config

	_ newSession[whisper.Model, whisper.Session, whisper.SessionConfig]       = (*whisper.Model).NewSession
	_ newSession[moonshine.Model, moonshine.Session, moonshine.SessionConfig] = (*moonshine.Model).NewSession
	_ newSession[gigaam.Model, asr.Session, asr.SessionConfig]                = (*gigaam.Model).NewSession
	_ newSession[parakeet.Model, asr.Session, asr.SessionConfig]              = (*parakeet.Model).NewSession
	_ newSession[pyannote.Model, pyannote.Session, pyannote.SessionConfig]    = (*pyannote.Model).NewSession
	_ newSession[wespeaker.Model, wespeaker.Session, wespeaker.SessionConfig] = (*wespeaker.Model).NewSession
	_ newSession[ge2e.Model, ge2e.Session, ge2e.SessionConfig]                = (*ge2e.Model).NewSession

	_ transcribe[*whisper.Model, whisper.Options, whisper.Result]         = (*whisper.Model).Transcribe
	_ transcribe[*whisper.Session, whisper.Options, whisper.Result]       = (*whisper.Session).Transcribe
	_ transcribe[*moonshine.Model, moonshine.Options, moonshine.Result]   = (*moonshine.Model).Transcribe
	_ transcribe[*moonshine.Session, moonshine.Options, moonshine.Result] = (*moonshine.Session).Transcribe
	_ transcribe[*gigaam.Model, asr.Options, asr.Result]                  = (*gigaam.Model).Transcribe
	_ transcribe[*parakeet.Model, asr.Options, asr.Result]                = (*parakeet.Model).Transcribe
	_ transcribe[*asr.Session, asr.Options, asr.Result]                   = (*asr.Session).Transcribe

	_ closer[silero.Model]    = (*silero.Model).Close
	_ closer[whisper.Model]   = (*whisper.Model).Close
	_ closer[moonshine.Model] = (*moonshine.Model).Close
	_ closer[gigaam.Model]    = (*gigaam.Model).Close
	_ closer[parakeet.Model]  = (*parakeet.Model).Close
	_ closer[pyannote.Model]  = (*pyannote.Model).Close
	_ closer[wespeaker.Model] = (*wespeaker.Model).Close
	_ closer[ge2e.Model]      = (*ge2e.Model).Close
)
