! Zonal means of a shallow water model: the series stays open.
program shallow
  implicit none
  integer, parameter :: n = 64, steps = 120000
  real(8) :: h(n), u(n), c
  integer :: i, t
  h = [(1.0d0 + 0.1d0 * exp(-((i - 32) / 5.0d0)**2), i = 1, n)]
  u = 0.0d0
  c = 0.05d0
  open(10, file='series.bin', form='unformatted', access='stream', status='replace')
  do t = 1, steps
    u = u - c * (cshift(h, 1) - cshift(h, -1)) / 2
    h = h - c * (cshift(u, 1) - cshift(u, -1)) / 2
    write(10) t, sum(h) / n, maxval(h), minval(h)
  end do
  close(10)
  print '(2f12.6)', sum(h) / n, maxval(h)
end program
