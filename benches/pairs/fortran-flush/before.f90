! Lorenz system: a line for each step, flushed so that it can be plotted meanwhile.
program lorenz
  implicit none
  real(8) :: x, y, z, dx, dy, dz
  real(8), parameter :: dt = 1.0d-3
  integer :: t
  x = 1.0d0
  y = 1.0d0
  z = 1.0d0
  open(20, file='orbit.txt', status='replace')
  do t = 1, 250000
    dx = 10.0d0 * (y - x)
    dy = x * (28.0d0 - z) - y
    dz = x * y - 8.0d0 / 3.0d0 * z
    x = x + dt * dx
    y = y + dt * dy
    z = z + dt * dz
    write(20, '(i8,3f12.6)') t, x, y, z
    flush(20)
  end do
  close(20)
  print '(3f12.6)', x, y, z
end program
