.PHONY: bench versus clean

bench:  ## kernels, and the ratios promised in docs/benchmarks
	OMP_NUM_THREADS=1 python -m pytest benchmarks/kernels --benchmark-only -q -p no:xdist
	python benchmarks/targets.py
	python benchmarks/report.py

versus:  ## against the peers: pip install copt celer skglm first
	python benchmarks/versus/run.py
	python benchmarks/report.py

clean:  ## compiled kernels and caches
	find . -name '*.nb[ic]' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
