package main

import (
	"errors"

	"github.com/tandem-gpu/tandem/cuda/kernels"
)

func images(o options, families []kernels.Family) error { return errors.New("not yet") }
