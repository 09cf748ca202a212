package frontend

import "github.com/tandem-gpu/tandem/pass"

// SampleRate is the number of samples in a second.
const SampleRate = 16000

// MaxMels is how many bins Whisper and Parakeet have at most.
const MaxMels = 1024

// Whisper returns the front end of the Whisper models, with 80 bins, or 128 from large-v3
// on (Radford et al., Robust speech recognition via large-scale weak supervision, 2022;
// whisper/audio.py). Frames of 25 ms every 10 ms, reflected at the ends, a periodic Hann
// window, Slaney's scale with triangles of equal area; log10 of at least 1e-10, at least
// the largest of the clip less 8, (x + 4)/4. The models take clips of exactly 480000
// samples, filled up with zeros: 3000 frames. With mels beyond 1 to MaxMels, Load refuses
// the weights.
func Whisper(mels int) pass.MelWeights {
	return slaneyWeights(mels, pass.MelWeights{
		Name:   "whisper",
		Window: hannPeriodic(400), FFT: 400, Hop: 160,
		PadLeft: 200, PadRight: 200, Padding: pass.PadReflect, DropLast: true,
		Log: pass.MelLog10, Min: 1e-10, Normalise: pass.MelWhisper,
	})
}

// Parakeet returns the front end of the Parakeet models, with 80 or 128 bins (NVIDIA NeMo,
// parts/preprocessing/features.py, FilterbankFeatures without dither). Pre-emphasis of
// 0.97 over the clip; frames of 25 ms every 10 ms, centred, with zeros beyond the ends, a
// symmetric Hann window in the middle of a transform of 512; Slaney's scale with triangles
// of equal area; ln(x + 2⁻²⁴); each bin is given mean 0 and deviation 1 over the clip but
// for the last frame, which becomes 0. With mels beyond 1 to MaxMels, Load refuses the
// weights.
func Parakeet(mels int) pass.MelWeights {
	return slaneyWeights(mels, pass.MelWeights{
		Name:   "parakeet",
		Window: centred(hannSymmetric(400), 512), FFT: 512, Hop: 160,
		PadLeft: 256, PadRight: 256,
		PreEmphasis: 0.97,
		Log:         pass.MelLn, Add: 0x1p-24, Normalise: pass.MelPerBin, NormaliseEps: 1e-5,
	})
}

// GigaAM returns the front end of GigaAM v3: frames of 20 ms every 10 ms without padding,
// a periodic Hann window, 64 triangles of height 1 on the scale of HTK, ln of at least
// 1e-9 and at most 1e9 (torchaudio's MelSpectrogram with center false).
func GigaAM() pass.MelWeights {
	return pass.MelWeights{
		Name:   "gigaam",
		Window: hannPeriodic(320), FFT: 320, Hop: 160,
		Bank: htk(64, 320), Mels: 64,
		Log: pass.MelLn, Min: 1e-9, Max: 1e9,
	}
}

// Kaldi returns the filter bank features of Kaldi as WeSpeaker uses them, 80 bins from 20
// Hz on, without dither: samples in the range of int16; frames of 25 ms every 10 ms
// without padding, from each its mean subtracted and then a pre-emphasis of 0.97 within
// the frame, a symmetric Hamming window, a transform of 512; ln of at least 1.1920929e-7,
// less its mean over time.
func Kaldi() pass.MelWeights {
	return pass.MelWeights{
		Name:   "kaldi",
		Window: hammingSymmetric(400), FFT: 512, Hop: 160,
		Bank: kaldi(80, 512), Mels: 80,
		Gain: 32768, PreEmphasis: 0.97, PerFrame: true,
		Log: pass.MelLn, Min: 0x1p-23, Normalise: pass.MelMean,
	}
}

// GE2E returns the front end of the speaker encoders that were trained with the
// generalised end-to-end loss (Wan et al., Generalized end-to-end loss for speaker
// verification, 2018; as Resemblyzer has it): the power of 40 bins on Slaney's scale with
// triangles of equal area, without a logarithm, of frames of 25 ms every 10 ms, centred,
// with zeros beyond the ends, and a periodic Hann window.
func GE2E() pass.MelWeights {
	return slaneyWeights(40, pass.MelWeights{
		Name:   "ge2e",
		Window: hannPeriodic(400), FFT: 400, Hop: 160,
		PadLeft: 200, PadRight: 200,
	})
}

// slaneyWeights adds Slaney's bank. Numbers of bins that no bank has are left for Load to
// refuse.
func slaneyWeights(mels int, w pass.MelWeights) pass.MelWeights {
	w.Mels = mels
	if mels >= 1 && mels <= MaxMels {
		w.Bank = slaney(mels, w.FFT)
	}
	return w
}
