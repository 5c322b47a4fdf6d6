! Verlet steps of a chain of atoms: one large unformatted record at the end.
program chain
  implicit none
  integer, parameter :: n = 160
  real(8) :: x(n), v(n), f(n)
  real(8), allocatable :: history(:,:)
  integer :: i, t
  x = [(i * 1.0d0 + 0.05d0 * sin(1.7d0 * i), i = 1, n)]
  v = 0.0d0
  allocate(history(5, 12000))
  open(40, file='chain.dat', form='unformatted', status='replace')
  do t = 1, 240000
    f = 0.0d0
    do i = 2, n
      f(i) = f(i) - tanh(x(i) - x(i-1) - 1.0d0)
      f(i-1) = f(i-1) + tanh(x(i) - x(i-1) - 1.0d0)
    end do
    v = v + 0.01d0 * f
    x = x + 0.01d0 * v
    if (mod(t, 20) == 0) history(:, t / 20) = x(1:5)
  end do
  write(40) history
  close(40)
  print '(2f14.8)', x(1), x(n)
end program
