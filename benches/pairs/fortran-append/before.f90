! Zonal means of a shallow water model: the series is opened, appended to and closed each step.
program shallow
  implicit none
  integer, parameter :: n = 64, steps = 120000
  real(8) :: h(n), u(n), c
  integer :: i, t
  h = [(1.0d0 + 0.1d0 * exp(-((i - 32) / 5.0d0)**2), i = 1, n)]
  u = 0.0d0
  c = 0.05d0
  open(10, file='series.bin', form='unformatted', access='stream', status='replace')
  close(10)
  do t = 1, steps
    u = u - c * (cshift(h, 1) - cshift(h, -1)) / 2
    h = h - c * (cshift(u, 1) - cshift(u, -1)) / 2
    open(10, file='series.bin', form='unformatted', access='stream', position='append')
    write(10) t, sum(h) / n, maxval(h), minval(h)
    close(10)
  end do
  print '(2f12.6)', sum(h) / n, maxval(h)
end program
