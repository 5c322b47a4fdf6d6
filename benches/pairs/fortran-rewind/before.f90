! Optical depth along a ray: the opacity of each cell is looked up in the table's file.
program ray
  implicit none
  integer, parameter :: cells = 700
  real(8) :: temperature, depth, t, k
  integer :: i, status
  depth = 0.0d0
  open(30, file='opacity.dat', form='unformatted', status='old', action='read')
  do i = 1, cells
    temperature = 5000.0d0 + 4000.0d0 * sin(0.37d0 * i)
    rewind(30)
    do
      read(30, iostat=status) t, k
      if (status /= 0 .or. t >= temperature) exit
    end do
    depth = depth + k * 0.01d0
  end do
  close(30)
  print '(es14.6)', depth
end program
