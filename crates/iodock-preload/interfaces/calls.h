/* The intercepted calls of MPI-IO, by the kind of their arguments. The position in this list is the call's
 * number in records; src/interfaces.rs has the same list.
 *
 *   POINTER (file, buffer, count, type, ...): at the file's individual or shared position
 *   OFFSET  (file, offset, buffer, count, type, ...)
 *   PLAIN   (file, ...)
 *   INFO    (file, info)
 *   OPEN, CLOSE and VIEW: one call each, see mpi_io.c
 *
 * The second name is the call's name in Fortran, which passes the same arguments by reference. The number is
 * the index of Fortran's error code among the arguments, from 0.
 */
#define EACH_CALL(POINTER, OFFSET, PLAIN, OPEN, CLOSE, VIEW, INFO) \
	OPEN(MPI_File_open, mpi_file_open, 5) \
	CLOSE(MPI_File_close, mpi_file_close, 1) \
	VIEW(MPI_File_set_view, mpi_file_set_view, 6) \
	PLAIN(MPI_File_set_size, mpi_file_set_size, 2) \
	PLAIN(MPI_File_preallocate, mpi_file_preallocate, 2) \
	PLAIN(MPI_File_get_size, mpi_file_get_size, 2) \
	PLAIN(MPI_File_sync, mpi_file_sync, 1) \
	PLAIN(MPI_File_set_atomicity, mpi_file_set_atomicity, 2) \
	INFO(MPI_File_set_info, mpi_file_set_info, 2) \
	PLAIN(MPI_File_seek, mpi_file_seek, 3) \
	PLAIN(MPI_File_seek_shared, mpi_file_seek_shared, 3) \
	POINTER(MPI_File_read, mpi_file_read, 5) \
	POINTER(MPI_File_write, mpi_file_write, 5) \
	POINTER(MPI_File_read_all, mpi_file_read_all, 5) \
	POINTER(MPI_File_write_all, mpi_file_write_all, 5) \
	OFFSET(MPI_File_read_at, mpi_file_read_at, 6) \
	OFFSET(MPI_File_write_at, mpi_file_write_at, 6) \
	OFFSET(MPI_File_read_at_all, mpi_file_read_at_all, 6) \
	OFFSET(MPI_File_write_at_all, mpi_file_write_at_all, 6) \
	POINTER(MPI_File_read_shared, mpi_file_read_shared, 5) \
	POINTER(MPI_File_write_shared, mpi_file_write_shared, 5) \
	POINTER(MPI_File_read_ordered, mpi_file_read_ordered, 5) \
	POINTER(MPI_File_write_ordered, mpi_file_write_ordered, 5) \
	POINTER(MPI_File_iread, mpi_file_iread, 5) \
	POINTER(MPI_File_iwrite, mpi_file_iwrite, 5) \
	POINTER(MPI_File_iread_all, mpi_file_iread_all, 5) \
	POINTER(MPI_File_iwrite_all, mpi_file_iwrite_all, 5) \
	OFFSET(MPI_File_iread_at, mpi_file_iread_at, 6) \
	OFFSET(MPI_File_iwrite_at, mpi_file_iwrite_at, 6) \
	OFFSET(MPI_File_iread_at_all, mpi_file_iread_at_all, 6) \
	OFFSET(MPI_File_iwrite_at_all, mpi_file_iwrite_at_all, 6) \
	POINTER(MPI_File_iread_shared, mpi_file_iread_shared, 5) \
	POINTER(MPI_File_iwrite_shared, mpi_file_iwrite_shared, 5) \
	POINTER(MPI_File_read_all_begin, mpi_file_read_all_begin, 4) \
	POINTER(MPI_File_write_all_begin, mpi_file_write_all_begin, 4) \
	PLAIN(MPI_File_read_all_end, mpi_file_read_all_end, 3) \
	PLAIN(MPI_File_write_all_end, mpi_file_write_all_end, 3) \
	OFFSET(MPI_File_read_at_all_begin, mpi_file_read_at_all_begin, 5) \
	OFFSET(MPI_File_write_at_all_begin, mpi_file_write_at_all_begin, 5) \
	PLAIN(MPI_File_read_at_all_end, mpi_file_read_at_all_end, 3) \
	PLAIN(MPI_File_write_at_all_end, mpi_file_write_at_all_end, 3) \
	POINTER(MPI_File_read_ordered_begin, mpi_file_read_ordered_begin, 4) \
	POINTER(MPI_File_write_ordered_begin, mpi_file_write_ordered_begin, 4) \
	PLAIN(MPI_File_read_ordered_end, mpi_file_read_ordered_end, 3) \
	PLAIN(MPI_File_write_ordered_end, mpi_file_write_ordered_end, 3)
