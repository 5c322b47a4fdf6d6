! Random walk with a trace that others may follow: flushed, or not where NOFLUSH is set.
program walk
  implicit none
  real(8) :: x, r
  integer :: t, seed(33)
  character(8) :: quiet
  seed = 4711
  call random_seed(put=seed)
  call get_environment_variable('NOFLUSH', quiet)
  x = 0.0d0
  open(12, file='walk.txt', status='replace')
  do t = 1, 900000
    call random_number(r)
    x = x + r - 0.5d0
    write(12, '(i8,f12.6)') t, x
    if (quiet == '') flush(12)
  end do
  close(12)
  print '(f12.6)', x
end program
