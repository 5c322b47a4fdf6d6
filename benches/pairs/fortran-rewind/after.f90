! Optical depth along a ray: the table is read once, and searched in memory.
program ray
  implicit none
  integer, parameter :: cells = 700, entries = 20000
  real(8) :: temperature, depth, t(entries), k(entries)
  integer :: i, n
  depth = 0.0d0
  open(30, file='opacity.dat', form='unformatted', status='old', action='read')
  do n = 1, entries
    read(30) t(n), k(n)
  end do
  close(30)
  do i = 1, cells
    temperature = 5000.0d0 + 4000.0d0 * sin(0.37d0 * i)
    do n = 1, entries - 1
      if (t(n) >= temperature) exit
    end do
    depth = depth + k(n) * 0.01d0
  end do
  print '(es14.6)', depth
end program
