! Tracers in a wind field: each rank writes the mean position of its tracers in each step.
program tracers
  use mpi
  implicit none
  integer, parameter :: n = 100, steps = 120000
  real(8) :: x(n), total, mean
  integer :: rank, ierr, i, t
  character(16) :: name
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  write(name, '(a,i0,a)') 'mean', rank, '.txt'
  open(11, file=name, status='replace')
  x = [(0.01d0 * i + rank, i = 1, n)]
  do t = 1, steps
    x = x + 1.0d-3 * (1.0d0 + 0.5d0 * x / (1.0d0 + x * x))
    write(11, '(i8,f14.8)') t, sum(x) / n
  end do
  close(11)
  mean = sum(x) / n
  call MPI_Reduce(mean, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
  if (rank == 0) print '(f14.8)', total
  call MPI_Finalize(ierr)
end program
