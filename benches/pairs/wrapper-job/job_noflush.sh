#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --time=00:10:00
cd "${SLURM_SUBMIT_DIR:-.}"
export OMP_NUM_THREADS=1
export NOFLUSH=1
exec ./pr
