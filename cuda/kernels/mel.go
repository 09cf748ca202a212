package kernels

// MelRadices is how many passes a transform may have; see [Mel].
const MelRadices = 12

// A Mel makes Frames frames of each item, Count in all, up to the logarithm. A warp makes
// Each of them, one after the other. Half is the length of the transform of a frame's
// samples, taken in pairs as complex numbers: the product of Passes radices.
//
// Tables are 2·Half complex turns, clockwise, and from the words number Window and Bank on
// the factors of the samples and for each bin its first frequency, how many there are, and
// the word at which their weights begin. For the entries that are twofold, turns and
// factors are two floats for each number, and Gain is in the factors.
type Mel struct {
	X, Y                   View
	Tables                 U32
	Largest                F32 // logarithm of each frame; nil: not wanted
	Lengths                Items
	Count, Each            uint32
	Samples, Frames        uint32
	Frame, Hop, Mels       uint32
	Left, Right            uint32
	Drop, Reflect          uint32 // 1: the last frame is left out; padding is reflection
	PerFrame, Log          uint32 // Log: a pass.MelLog
	Half, Passes           uint32
	Window, Bank           uint32
	Gain, Emphasis         float32
	Lowest, Highest, Added float32
	Radices                [MelRadices]uint32
}

// A MelNormal is what LogMel does with the logarithms of an item. Groups are the blocks
// of an item.
type MelNormal struct {
	Y               View
	Largest         F32
	Lengths         Items
	Samples, Frames uint32
	Frame, Hop      uint32
	Mels            uint32
	Left, Right     uint32
	Drop, Reflect   uint32
	PerBin          uint32
	Groups          uint32
	Epsilon         float32
}

var mel = Family{"mel", []Entry{
	{Name: "mel_frames_4", Call: "mel::frames<4>", Args: Mel{}, Threads: 128, Shared: -1},
	{Name: "mel_frames_1", Call: "mel::frames<1>", Args: Mel{}, Threads: 32, Shared: -1},
	{Name: "mel_frames_twofold_4", Call: "mel::twofold<4>", Args: Mel{}, Threads: 128, Shared: -1},
	{Name: "mel_frames_twofold_1", Call: "mel::twofold<1>", Args: Mel{}, Threads: 32, Shared: -1},
	{Name: "mel_scale", Call: "mel::scale", Args: MelNormal{}, Threads: 256},
	{Name: "mel_bins", Call: "mel::bins", Args: MelNormal{}, Threads: 1024},
}}
