! Snapshots of a wave field: 40 of 8 MB, kept in memory and written at the end.
program waves
  implicit none
  integer, parameter :: n = 1000
  real(8), allocatable :: u(:,:), v(:,:), all(:,:,:)
  integer :: i, j, t
  allocate(u(n, n), v(n, n), all(n, n, 40))
  do j = 1, n
    do i = 1, n
      u(i, j) = exp(-((i - 500)**2 + (j - 500)**2) / 2000.0d0)
    end do
  end do
  v = 0.0d0
  open(15, file='waves.bin', form='unformatted', access='stream', status='replace')
  do t = 1, 40
    do i = 1, 6
      v(2:n-1, 2:n-1) = v(2:n-1, 2:n-1) + 0.1d0 * (u(1:n-2, 2:n-1) + u(3:n, 2:n-1) &
        + u(2:n-1, 1:n-2) + u(2:n-1, 3:n) - 4 * u(2:n-1, 2:n-1))
      u = u + 0.1d0 * v
    end do
    all(:, :, t) = u
  end do
  write(15) all
  close(15)
  print '(es14.6)', sum(u)
end program
